// Package schema is the vocabulary of Taskforce and its wire contract.
//
// Everything a host can say to the sidecar, and everything it can hear back,
// is declared here once: parameter and result types ([ReserveParams],
// [Reservation], ...), the method table ([Methods]), and the error table
// ([Codes]). The rest derives from these declarations. JSON Schemas are
// reflected from the types, with their doc comments as descriptions, and
// committed as part of generated/openrpc.json (package openrpc, below this one);
// the validators, the dispatch of package rpc and the clients follow from it and
// the method table.
//
// Parameters are validated by code of this package (subschema.go, validate.go)
// and not by a library, because a sidecar is started for each host and answers
// calls in microseconds. santhosh-tekuri/jsonschema/v6 compiles the meta-schemas
// when the process begins (5.6 ms), wants the whole document parsed at the first
// call, and validates trees of `any`: to bind the parameters of a reserve took
// 14 µs and 133 allocations, and takes 4 µs and 5. Spawn to first reply fell from
// 13.7 ms to 4.9 ms when it left the sidecar, together with the libraries behind
// the generator. It remains as the oracle of the tests: both must find the same
// violations.
//
// The package imports nothing of the project, so that every other package can
// speak in its words.
package schema
