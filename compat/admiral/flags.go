package admiral

import (
	"flag"
	"time"

	"github.com/leasehold/leasehold/internal/durations"
)

// Flags are the flags of Admiral that concern the state checker and the addresses that it hands
// out.
type Flags struct {
	CheckerName string        // --admiral_state_checker_name
	ConfigPath  string        // --dr_state_store_config_path
	Prefix      string        // --se_ip_prefix
	SyncPeriod  time.Duration // --sync_period: the warm-up
	ConfigMap   string        // --se_address_configmap
	Namespace   string        // --sync_namespace
}

// AddFlags defines the flags in fs, with Admiral's names and defaults, and returns where their
// values are after fs.Parse.
func AddFlags(fs *flag.FlagSet) *Flags {
	f := new(Flags)
	fs.StringVar(&f.CheckerName, "admiral_state_checker_name", NoOP, "the state checker: who may write is found out by it")
	fs.StringVar(&f.ConfigPath, "dr_state_store_config_path", "", "the state checker's configuration file")
	fs.StringVar(&f.Prefix, "se_ip_prefix", DefaultPrefix, "first two octets of the service addresses that this deployment hands out; auto picks free ones")
	f.SyncPeriod = 5 * time.Minute
	fs.Var((*duration)(&f.SyncPeriod), "sync_period", "the warm-up: how long an instance is not active after its start")
	fs.StringVar(&f.ConfigMap, "se_address_configmap", "se-address-configmap", "the ConfigMap that keeps the service addresses")
	fs.StringVar(&f.Namespace, "sync_namespace", "admiral-sync", "the namespace of that ConfigMap")
	return f
}

// duration is a flag that reads what all of Leasehold's flags for durations read.
type duration time.Duration

// String implements [flag.Value].
func (d *duration) String() string { return time.Duration(*d).String() }

// Set implements [flag.Value].
func (d *duration) Set(text string) error {
	got, err := durations.Parse(text)
	if err == nil {
		*d = duration(got)
	}
	return err
}
