package main

func typescript(doc *document) []byte { return nil }
