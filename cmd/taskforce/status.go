package main

import (
	"github.com/spf13/cobra"
)

func newStatus() *cobra.Command { return &cobra.Command{Use: "status"} }
func newDoctor() *cobra.Command { return &cobra.Command{Use: "doctor"} }
