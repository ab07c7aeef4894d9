package fencedynamodb

import (
	"errors"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
)

// The attributes of a mark: a number and a string.
const (
	TokenAttribute  = "fence_token"
	HolderAttribute = "fence_holder"
)

// What stands for the attributes and for the sequencer in expressions, along with what the caller's
// stand for.
const (
	tokenName, holderName   = "#leasehold_token", "#leasehold_holder"
	tokenValue, holderValue = ":leasehold_token", ":leasehold_holder"
	leastValue              = ":leasehold_least" // the lowest token that there is
)

// The conditions on an item with a mark, and what makes it that of the sequencer. A number below
// all tokens is no mark, and is not lower.
const (
	isMine  = tokenName + " = " + tokenValue + " AND " + holderName + " = " + holderValue
	isLower = "attribute_not_exists(" + tokenName + ") OR (" + tokenName + " >= " + leastValue + " AND " + tokenName + " < " + tokenValue + ")"
	admits  = "(" + isLower + " OR (" + isMine + "))"
	raise   = tokenName + " = " + tokenValue + ", " + holderName + " = " + holderValue
)

type item = map[string]types.AttributeValue

// attributes returns the mark of s as it is stored.
func attributes(s fence.Sequencer) (token, holder types.AttributeValue) {
	return &types.AttributeValueMemberN{Value: s.Token.String()}, &types.AttributeValueMemberS{Value: s.Holder}
}

// names returns what the names in the caller's expressions and in ours stand for.
func names(callers map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, callers)
	all[tokenName], all[holderName] = TokenAttribute, HolderAttribute
	return all
}

// values returns what the values in the caller's expressions and in ours stand for.
func values(s fence.Sequencer, callers item) item {
	all := mine(s)
	maps.Copy(all, callers)
	all[leastValue] = &types.AttributeValueMemberN{Value: "1"}
	return all
}

// mine returns what the values in isMine stand for.
func mine(s fence.Sequencer) item {
	all := item{}
	all[tokenValue], all[holderValue] = attributes(s)
	return all
}

// judge returns why an item, as it was when a condition on it failed, refuses s: a
// *[fence.StaleError], or an error about a mark that is none. It returns nil when the mark is not
// the reason; same is then whether it is that of s already.
func judge(s fence.Sequencer, old item) (same bool, err error) {
	mark, err := read(old)
	if err != nil {
		return false, fmt.Errorf("%s: the mark of the item can't be read: %w", s.Name, err)
	}
	next, err := mark.Admit(s.Name, s.Holder, s.Token)
	return next == mark, err
}

// read returns the mark on an item; that of one without is the zero Mark.
func read(it item) (m fence.Mark, err error) {
	if it[TokenAttribute] == nil {
		return m, nil
	}
	number, ok := it[TokenAttribute].(*types.AttributeValueMemberN)
	if !ok {
		return m, fmt.Errorf("%s is no number", TokenAttribute)
	}
	if m.Token, err = fence.ParseToken(number.Value); err != nil {
		return m, fmt.Errorf("%s: %w", TokenAttribute, err)
	}
	holder, ok := it[HolderAttribute].(*types.AttributeValueMemberS)
	if !ok {
		return m, fmt.Errorf("%s is no string", HolderAttribute)
	}
	m.Holder = holder.Value
	return m, nil
}

// refused returns the error of a write whose condition may have failed, for the caller.
func refused(s fence.Sequencer, err error) error {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		if _, reason := judge(s, failed.Item); reason != nil {
			return reason
		}
	}
	return err
}
