package main

import (
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	var c tally
	if !c.none(0) {
		t.Error("something runs before anything began")
	}
	first, second := c.begin(), c.begin()
	first()
	if c.none(time.Millisecond) {
		t.Error("nothing runs though one has not ended")
	}
	waiting := make(chan bool)
	for range 2 {
		go func() { waiting <- c.none(time.Minute) }()
	}
	second()
	for range 2 {
		if !<-waiting {
			t.Error("it was not told that nothing runs any more")
		}
	}
	third := c.begin()
	if c.none(time.Millisecond) {
		t.Error("nothing runs though one began again")
	}
	third()
	if !c.none(0) {
		t.Error("something runs after all have ended")
	}
}
