package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the checkout")
	into := flag.String("into", "", "the folder that the site is written to; it is made if it isn't there")
	flag.Parse()
	if *into == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: site --into DIR [--root CHECKOUT]")
		os.Exit(64)
	}
	made, err := build(*root, *into)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(made)
}
