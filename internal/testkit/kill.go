package testkit

import (
	"encoding/json/v2"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Victim lets a test binary be the program that KillAt kills: called from
// TestMain, it runs with the settings of KillAt and gives an error whenever that
// comes to an end; in a process that has no settings it gives nil at once.
func Victim[S any](run func(S) error) error {
	text, ok := os.LookupEnv(victimVariable)
	if !ok {
		return nil
	}
	var settings S
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return err
	}
	return errors.Join(errors.New("nobody killed this process"), run(settings))
}

const victimVariable = "PACKHOF_TEST_VICTIM"

// KillAt runs the test binary as the Victim with these settings, and kills it
// as kill -9 would when a request of it that matches has reached the server;
// that request is never answered. It is over before KillAt returns.
func KillAt(t testing.TB, s *S3, match Match, settings any) {
	t.Helper()
	reached := make(chan struct{}, 8)
	s.SetFault(func(next http.Handler) http.Handler {
		hang := Hang(match)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if match(r) {
				reached <- struct{}{}
			}
			hang.ServeHTTP(w, r)
		})
	})
	defer s.SetFault(nil)
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+string(text))
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-reached:
	case err := <-ended:
		t.Fatalf("it ended too early: %v\n%s", err, said.String())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}
