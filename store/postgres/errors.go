package postgres

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/jackc/pgx/v5/pgconn"
)

// lostError is a failure of the connection: it could not be made, or broke.
type lostError struct{ error }

func (e lostError) Unwrap() error { return e.error }

func lost(err error) error { return lostError{err} }

// isLost reports whether the way to the server is what failed, or the server
// that is at its end cannot write.
func isLost(err error) bool {
	var broken lostError
	return errors.As(err, &broken) || stateOf(err) == readOnlyTransaction
}

// rowError is a value that is not what its column promises.
type rowError struct{ error }

func (e rowError) Unwrap() error { return e.error }

// stateOf is the SQLSTATE of an error, "" if it has none.
func stateOf(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}

// The SQLSTATEs that are treated apart from their class.
const (
	readOnlyTransaction  = "25006" // a standby, perhaps yesterday's primary
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	insufficientRights   = "42501"
	diskFull             = "53100"
	tooManyConnections   = "53300"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
	idleTimeout          = "25P03"
	featureNotSupported  = "0A000" // a cached plan whose tables were changed since
)

// isTransient reports whether the same transaction may succeed at once, or soon.
func isTransient(err error) bool {
	switch stateOf(err) {
	case "":
		var broken lostError
		var certificate *tls.CertificateVerificationError
		return errors.As(err, &broken) && !errors.As(err, &certificate)
	case readOnlyTransaction, serializationFailure, deadlockDetected, tooManyConnections,
		adminShutdown, crashShutdown, cannotConnectNow, idleTimeout, featureNotSupported:
		return true
	}
	return stateOf(err)[:2] == "08"
}

// isLostRead is isTransient for a transaction that only reads, where the refusal
// to write is no sign of a standby.
func isLostRead(err error) bool {
	return stateOf(err) != readOnlyTransaction && isTransient(err)
}

// classify turns an error of the driver into one of the E_STORE codes, by its
// SQLSTATE and never by its text. What is already a [schema.Error] is returned
// as it is, and so is the end of the caller's context.
func classify(err error, format string, args ...any) error {
	var known *schema.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	e := schema.Errorf(codeOf(err), format, args...)
	e.Message += ": " + explain(e.Code)
	e.Err = err
	return e
}

func codeOf(err error) schema.Code {
	var row rowError
	var certificate *tls.CertificateVerificationError
	state := stateOf(err)
	switch {
	case errors.As(err, &row):
		return schema.ErrStoreCorrupt
	case errors.As(err, &certificate):
		return schema.ErrStoreConfig
	case isTransient(err) && state != readOnlyTransaction, errors.Is(err, context.DeadlineExceeded):
		return schema.ErrStoreBusy
	case state == "":
		return schema.ErrStoreIO
	}
	return codeOfState(state)
}

func codeOfState(state string) schema.Code {
	switch state {
	case lockNotAvailable, queryCanceled:
		return schema.ErrStoreBusy
	case diskFull:
		return schema.ErrStoreFull
	case readOnlyTransaction, insufficientRights:
		return schema.ErrStoreReadonly
	}
	switch state[:2] {
	case "28", "3D", "3F": // authorization, no such database, no such schema
		return schema.ErrStoreConfig
	case "21", "22", "23", "42", "XX":
		// The engine's statements are constant, so an SQL error or a broken
		// constraint means that the schema does not hold what it promises.
		return schema.ErrStoreCorrupt
	}
	return schema.ErrStoreIO
}

// explain says in words what a person can do about a code; the driver's text stays in the log.
func explain(code schema.Code) string {
	switch code {
	case schema.ErrStoreBusy:
		return "no server that can write was reached, or another transaction kept a lock, for longer than the busy timeout"
	case schema.ErrStoreFull:
		return "the server's disk is full"
	case schema.ErrStoreReadonly:
		return "the server is a standby, or the role has too few privileges"
	case schema.ErrStoreConfig:
		return "the server refuses the role, the password, the certificate or the database"
	case schema.ErrStoreCorrupt:
		return "the schema is damaged or is not a Taskforce store"
	}
	return "the server failed to read or write"
}
