// Command gen writes everything that derives from package schema: the OpenRPC
// document that the sidecar embeds, and the typed half of each client.
//
// Run it from the module's root folder after a change to package schema:
//
//	go run ./clients/gen
package main

import (
	"fmt"
	"os"
)

func main() {
	files, err := generate(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	for path, text := range files {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}
