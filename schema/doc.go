// Package schema is the vocabulary of Taskforce and its wire contract.
//
// Everything a host can say to the sidecar, and everything it can hear back,
// is declared here once: parameter and result types ([ReserveParams],
// [Reservation], ...), the method table ([Methods]), and the error table
// ([Codes]). The rest derives from these declarations. JSON Schemas are
// reflected from the types, with their doc comments as descriptions, and
// committed as generated/types.json; the OpenRPC document, the validators, the
// dispatch of package rpc and the clients follow from the method table.
//
// The package imports nothing of the project, so that every other package can
// speak in its words.
package schema
