package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store/driver"
)

// ReviewStatus says whether the table can be used.
func ReviewStatus(t *types.TableDescription) driver.Finding {
	f := driver.Finding{What: "table status", Status: driver.StatusOK, Detail: string(t.TableStatus)}
	switch t.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating:
		return f
	case types.TableStatusCreating:
		f.Advice = "try again when the table is ACTIVE"
	case types.TableStatusInaccessibleEncryptionCredentials:
		f.Advice = "let DynamoDB use the table's KMS key again"
	default:
		f.Advice = "restore the table, or name another one"
	}
	f.Status, f.Detail = driver.StatusFail, fmt.Sprintf("its status is %s, not ACTIVE", t.TableStatus)
	return f
}

// AdviseHome says what to do about a table that is written in another Region than its home.
const AdviseHome = "leases of this table are safe only while all who take them write in one Region: run in that Region, or make " +
	"a table in strong mode (MRSC)"

// ReviewRegions says whether strong reads and conditions hold for all who write to the table, for a
// client of that Region ("" where it doesn't say) and with home as the one Region that all are said
// to write in, if any.
func ReviewRegions(t *types.TableDescription, region, home string) driver.Finding {
	f := driver.Finding{What: "consistency mode", Status: driver.StatusOK}
	region = cmp.Or(region, regionOfARN(aws.ToString(t.TableArn)))
	var others []string
	for _, r := range t.Replicas {
		if name := aws.ToString(r.RegionName); name != region {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	legacy := aws.ToString(t.GlobalTableVersion) == "2017.11.29"
	strong := t.MultiRegionConsistency == types.MultiRegionConsistencyStrong
	switch {
	case home != "" && region != "" && home != region:
		f.Status, f.Detail, f.Advice = driver.StatusFail, fmt.Sprintf("its home Region is %s, and this client is one of %s", home, region), AdviseHome
	case len(others) == 0 && !legacy:
		f.Detail = "one Region: strong reads and conditional writes hold"
	case strong:
		f.Detail = fmt.Sprintf("global table in strong mode (MRSC), with %s: reads and conditions hold in all Regions", strings.Join(others, ", "))
	case home != "":
		f.Status = driver.StatusWarn
		f.Detail = fmt.Sprintf("global table in eventual mode (MREC), with %s; written in %s only, as home_region says", listed(others), home)
		f.Advice = "see that every other program that takes these leases writes in " + home + ", too"
	default:
		f.Status = driver.StatusFail
		f.Detail = fmt.Sprintf("it is a global table in eventual mode (MREC), with %s: conditions are judged on each Region's copy, "+
			"and the last writer wins, so two Regions could hold one lease", listed(others))
		f.Advice = fmt.Sprintf("set home_region (HomeRegion in Go, homeRegion in a file of Admiral's) to the one Region in which all take their "+
			"leases, such as %s, or make a table in strong mode (MRSC), or one in a single Region", cmp.Or(region, "us-east-1"))
	}
	return f
}

func listed(regions []string) string {
	if len(regions) == 0 {
		return "other Regions"
	}
	return strings.Join(regions, ", ")
}

// RegionOf returns the Region of the client, or "" where it doesn't say.
func RegionOf(client any) string {
	if c, ok := client.(interface{ Options() dynamodb.Options }); ok {
		return c.Options().Region
	}
	return ""
}

// regionOfARN returns the Region in arn:aws:dynamodb:REGION:ACCOUNT:table/NAME, or "".
func regionOfARN(arn string) string {
	const partOfRegion, parts = 3, 6
	if f := strings.SplitN(arn, ":", parts); len(f) == parts {
		return f[partOfRegion]
	}
	return ""
}

// Who is the finding of who the client is to AWS, by Options.Identity; nothing where that isn't
// set.
func (t *Table) Who(ctx context.Context) []driver.Finding {
	if t.opts.Identity == nil {
		return nil
	}
	who, err := t.opts.Identity(ctx)
	if err != nil {
		return []driver.Finding{{
			What: "identity", Status: driver.StatusWarn, Detail: "can't be asked for: " + err.Error(),
			Advice: "check the credentials; asking needs no permission, but the way to STS",
		}}
	}
	return []driver.Finding{{What: "identity", Status: driver.StatusOK, Detail: who}}
}
