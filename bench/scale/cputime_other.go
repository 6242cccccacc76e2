//go:build !linux

package main

import "time"

var started = time.Now()

func threadTime() time.Duration { return time.Since(started) }
