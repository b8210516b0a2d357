package governor

import "github.com/dsh-taskforce/sidecar/schema"

// NativeAdapter always returns E_SCHEDULER_CAPABILITY: native execution would
// need six capabilities that nobody can attest yet (GOVERNOR.md, "Native
// adapter and errors").
func NativeAdapter() error {
	err := schema.Errorf(schema.ErrSchedulerCapability, "native execution lacks required capabilities")
	err.Details.Blockers = []schema.Blocker{
		{Code: "H01", Capability: "Prebound native session identity"},
		{Code: "H02", Capability: "Complete managed input admission boundary"},
		{Code: "H03", Capability: "Strict durable backend flush and lookup"},
		{Code: "H04", Capability: "Subtree and process quiescence proof"},
		{Code: "H05", Capability: "Exclusive owner lock and recovery"},
		{Code: "H06", Capability: "Trusted workspace identity and isolation"},
	}
	return err
}
