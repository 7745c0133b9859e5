// Package clitest is for tests that hold the pages about a program against the
// program: it reads the pages that people are given, finds how they call a
// program, and shows the program's commands as they run. It never changes a
// page, and ships in no program.
package clitest
