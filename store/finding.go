package store

// Level says how bad a finding is.
type Level string

// The levels of a [Finding].
const (
	Fine    Level = "ok"
	Warning Level = "warn"
	Fault   Level = "FAIL"
)

// Finding is the answer to one question about a store.
type Finding struct {
	Level Level `json:"level"`
	// Name is a stable token for the question.
	Name string `json:"name"`
	// Explanation is the answer for people.
	Explanation string `json:"explanation"`
}

// Verification is what the examination of a ledger's rows found.
type Verification struct {
	// Sound says that no finding is a fault.
	Sound bool `json:"sound"`
	// StoreID is empty if no sidecar has served the store yet.
	StoreID string `json:"store_id"`
	// Rows says how much was read.
	Rows Rows `json:"rows"`
	// Breaches are the findings, in the order of the promises that they break.
	Breaches []Breach `json:"findings"`
}

// Rows counts what a ledger retains.
type Rows struct {
	Tasks        int64 `json:"tasks"`
	Events       int64 `json:"task_events"`
	Reservations int64 `json:"reservations"`
	Holds        int64 `json:"holds"`
	Charges      int64 `json:"retry_charges"`
	Audit        int64 `json:"audit_entries"`
}

// Breach is a row that breaks a promise.
type Breach struct {
	Level Level `json:"level"`
	// Check is the name of the promise, a stable token.
	Check string `json:"check"`
	// Table and Row say where the breach is. Row is the row's key, empty if the
	// breach is not one row's.
	Table string `json:"table"`
	Row   string `json:"row"`
	// Explanation says what is wrong, for people.
	Explanation string `json:"explanation"`
}
