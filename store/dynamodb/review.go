package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// checkTable refuses a table where leases would not work or not be safe.
func (s *Store) checkTable(ctx context.Context) error {
	desc, err := s.table.Describe(ctx)
	if err != nil {
		return undescribed(err)
	}
	ttl, err := s.table.DescribeTTL(ctx)
	if err != nil {
		return undescribed(err)
	}
	var errs []error
	for _, f := range review(desc.Table, ttl.TimeToLiveDescription, table.RegionOf(s.client), s.opts.HomeRegion) {
		if f.Status == driver.StatusFail {
			errs = append(errs, fmt.Errorf("table %s: %s: %s", s.table.Name, f.Detail, f.Advice))
		}
	}
	return errors.Join(errs...)
}

// undescribed says what else helps against err if that is that the table may not be described.
func undescribed(err error) error {
	if !table.Denied(err) {
		return err
	}
	return fmt.Errorf("%w (Options.Unchecked, or unchecked=true in a URL, opens a table that may not be described)", err)
}

// review says what a table's description means for leases.
func review(t *types.TableDescription, ttl *types.TimeToLiveDescription, region, home string) []driver.Finding {
	return []driver.Finding{
		table.ReviewStatus(t), reviewKey(t, attrKey), table.ReviewRegions(t, region, home),
		reviewTTL(ttl), reviewCapacity(t), reviewProtection(t),
	}
}

func reviewKey(t *types.TableDescription, key string) driver.Finding {
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range t.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	var parts []string
	for _, k := range t.KeySchema {
		name := aws.ToString(k.AttributeName)
		parts = append(parts, fmt.Sprintf("%s %s %s", name, kinds[name], k.KeyType))
	}
	f := driver.Finding{What: "key schema", Status: driver.StatusOK, Detail: strings.Join(parts, ", ")}
	if want := key + " S HASH"; f.Detail != want {
		f.Status = driver.StatusFail
		f.Detail = fmt.Sprintf("its key is (%s), not (%s)", f.Detail, want)
		f.Advice = "make a table of its own with `leasehold init dynamodb`; a table of another lock library takes the schema of that library"
	}
	return f
}

// reviewTTL: DynamoDB deletes rows whose TTL attribute is a number of seconds in the past. Of a
// row's attributes two are numbers: no reading of them as seconds lies in the near past today, and
// nobody should have to rely on that.
func reviewTTL(ttl *types.TimeToLiveDescription) driver.Finding {
	f := driver.Finding{What: "time to live", Status: driver.StatusOK, Detail: "off: nothing deletes records"}
	if ttl == nil || ttl.TimeToLiveStatus != types.TimeToLiveStatusEnabled && ttl.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
		return f
	}
	attr := aws.ToString(ttl.AttributeName)
	f.Status = driver.StatusWarn
	f.Detail = fmt.Sprintf("on, by attribute %s, which Leasehold doesn't write: it deletes no lease unless somebody adds that attribute", attr)
	f.Advice = "turn it off: expiry of leases doesn't use it"
	if slices.Contains([]string{attrKey, attrFormat, attrVersion, attrOwner, attrToken, attrTTL, attrSession, attrAcquired, attrMark, attrNote, attrInfo, attrPast, attrData, attrNonce, attrWritten}, attr) {
		f.Status = driver.StatusFail
		f.Detail = fmt.Sprintf("its time to live is on, by attribute %s of the leases: it could delete one that is held", attr)
		f.Advice = "turn it off (aws dynamodb update-time-to-live --time-to-live-specification Enabled=false,AttributeName=" + attr + "): expiry of leases doesn't use it"
	}
	return f
}

func reviewCapacity(t *types.TableDescription) driver.Finding {
	f := driver.Finding{What: "capacity", Status: driver.StatusOK, Detail: "on demand"}
	if t.BillingModeSummary == nil || t.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		f.Status, f.Detail = driver.StatusWarn, "provisioned"
		if p := t.ProvisionedThroughput; p != nil {
			f.Detail = fmt.Sprintf("provisioned, %d read and %d write units a second", aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits))
		}
		f.Advice = "switch to on-demand: a throttled renewal is a lease in jeopardy"
	}
	if n := len(t.GlobalSecondaryIndexes) + len(t.LocalSecondaryIndexes); n > 0 {
		f.Status = driver.StatusWarn
		f.Detail += fmt.Sprintf(", with %d indexes that each write pays for, too", n)
		f.Advice = strings.TrimPrefix(f.Advice+"; drop the indexes: Leasehold uses none", "; ")
	}
	return f
}

func reviewProtection(t *types.TableDescription) driver.Finding {
	f := driver.Finding{What: "deletion protection", Status: driver.StatusOK, Detail: "on"}
	if !aws.ToBool(t.DeletionProtectionEnabled) {
		f.Status, f.Detail = driver.StatusWarn, "off"
		f.Advice = "turn it on: a table that is deleted and made again has forgotten who holds what"
	}
	return f
}
