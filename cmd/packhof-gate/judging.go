package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/judge"
)

// startedFile is the program that this process runs: where it was, and which
// file it is, whatever lies there now.
type startedFile struct {
	path string
	info os.FileInfo
}

func startedProgram() (startedFile, error) {
	path, err := os.Executable()
	if err != nil {
		return startedFile{}, fmt.Errorf("which program this is: %w", err)
	}
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return startedFile{}, fmt.Errorf("which program this is: %w", err)
	}
	return startedFile{path: path, info: info}, nil
}

// there tells whether the program still lies where it was started.
func (f startedFile) there() bool {
	info, err := os.Stat(f.path)
	return err == nil && os.SameFile(f.info, info)
}

// judgeChild runs this program again, as "packhof-gate judge", within bounds.
func (s *site) judgeChild(self startedFile) judge.Child {
	return judge.Child{
		Program: self.path, Args: []string{"judge"}, Timeout: time.Duration(s.config.Judge.Timeout), Memory: int64(s.config.Judge.Memory),
	}
}

// boundedJudge is the gate's judge: the policy in force, in a child process.
type boundedJudge struct {
	child   judge.Child
	program startedFile
	source  policy.Source
}

// Evaluate implements gate.Judge. A program that lies where this one was, and
// is another one, is not asked: a serve that runs through an update would have
// its cases judged by a program that nobody started.
func (j *boundedJudge) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	if j.program.there() {
		return j.child.Evaluate(ctx, j.source, in)
	}
	policyDigest, err := j.source.Digest()
	if err != nil {
		return nil, err
	}
	inputDigest, err := in.Digest()
	if err != nil {
		return nil, err
	}
	return policy.FailedDecision(policyDigest, inputDigest, policy.Failure{
		Message: fmt.Sprintf("%s was replaced or removed since this gate was started, so there is no program to judge with: restart packhof-gate serve", filepath.Base(j.program.path)),
	}), nil
}
