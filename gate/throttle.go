package gate

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/packhof/packhof/internal/problem"
)

// Address is where somebody logs in from, as far as the server can tell: the
// network address of a client, or the user at the console.
type Address string

// attempts remembers failed logins, in memory: a restart forgives. Where an
// account has begun sessions is in the audit log, and known again then. Whoever
// guesses waits longer and longer at their own address, and so does everybody
// together, later and less: there an account is still let in where it has
// logged in before, so that strangers keep nobody out.
type attempts struct {
	mu      sync.Mutex
	list    map[login]attempt
	waiting map[Address]int // for their turn to hash
	all     int             // of these

	once    sync.Once
	hashing chan struct{} // held by the one who hashes
}

// login is an account at an address; the address everywhere stands for all
// that are not known.
type login struct {
	name string
	from Address
}

const everywhere Address = ""

type attempt struct {
	failures int
	last     time.Time
	known    bool // the account has logged in there
}

// Bounds of failed logins.
const (
	freeFailures       = 5 // of an account at one address
	longestWait        = 5 * time.Minute
	freeEverywhere     = 20 // of an account at all addresses that are not known
	longestEverywhere  = time.Minute
	maxAttempts        = 10_000
	mostWaiting        = 100
	mostWaitingFromOne = 4
)

// mayTry refuses who has to wait.
func (a *attempts) mayTry(l login, now time.Time) error {
	if wait := a.wait(l, now); wait > 0 {
		return problem.New("login/wait", "too many failed logins").With("wait:  " + wait.Round(time.Second).String()).Hint("wait that long, then try again")
	}
	return nil
}

func (a *attempts) wait(l login, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	here := a.list[l]
	wait := here.pause(freeFailures, longestWait, now)
	if here.known {
		return wait
	}
	return max(wait, a.list[login{l.name, everywhere}].pause(freeEverywhere, longestEverywhere, now))
}

// pause is what is left of the time that has to pass after so many failures.
func (t attempt) pause(free int, longest time.Duration, now time.Time) time.Duration {
	if t.failures < free {
		return 0
	}
	return max(0, min(longest, time.Second<<min(t.failures-free, 10))-now.Sub(t.last))
}

func (a *attempts) failed(l login, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(l, now)
	if !a.list[l].known {
		a.note(login{l.name, everywhere}, now)
	}
}

// note counts one failure.
func (a *attempts) note(l login, now time.Time) {
	t := a.list[l]
	t.failures, t.last = t.failures+1, now
	a.put(l, t)
}

func (a *attempts) put(l login, t attempt) {
	if a.list == nil {
		a.list = map[login]attempt{}
	}
	if _, there := a.list[l]; !there && len(a.list) >= maxAttempts {
		a.forgetOldest()
	}
	a.list[l] = t
}

// forgetOldest makes room: it forgets the tenth that was not seen for the
// longest time. Invented names cannot push out one that is being guessed at
// now, nor a known address while there are others.
func (a *attempts) forgetOldest() {
	all := slices.SortedFunc(maps.Keys(a.list), func(l, m login) int {
		one, other := a.list[l], a.list[m]
		if one.known != other.known {
			if one.known {
				return 1
			}
			return -1
		}
		return one.last.Compare(other.last)
	})
	for _, l := range all[:(len(all)+9)/10] {
		delete(a.list, l)
	}
}

// typeLogin is how leaves about logins are called, and loginFrom what else they
// say: a restart forgets where an account belongs no more than what it decided.
const typeLogin = "account.login"

type loginFrom struct {
	From Address `json:"from"`
}

// remember takes over where accounts have begun sessions before, the latest
// ones if there are too many.
func (a *attempts) remember(list map[login]time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	latest := slices.SortedFunc(maps.Keys(list), func(l, m login) int { return list[m].Compare(list[l]) })
	for _, l := range latest[:min(len(latest), maxAttempts/2)] {
		a.put(l, attempt{last: list[l], known: true})
	}
}

// succeeded forgives an address, and remembers it as one of the account's.
func (a *attempts) succeeded(l login, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put(l, attempt{last: now, known: true})
}

// turn waits until nobody else hashes. Where too many wait already it refuses,
// and from one address sooner, so that a flood of guesses does not keep
// everybody waiting for long.
func (a *attempts) turn(ctx context.Context, from Address) (done func(), err error) {
	a.once.Do(func() { a.hashing = make(chan struct{}, 1) })
	if !a.queue(from) {
		return nil, problem.New("login/wait", "too many people log in at once").Hint("try again in a moment")
	}
	defer a.unqueue(from)
	select {
	case a.hashing <- struct{}{}:
		return func() { <-a.hashing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a *attempts) queue(from Address) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all >= mostWaiting || from != everywhere && a.waiting[from] >= mostWaitingFromOne {
		return false
	}
	if a.waiting == nil {
		a.waiting = map[Address]int{}
	}
	a.all++
	a.waiting[from]++
	return true
}

func (a *attempts) unqueue(from Address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if a.waiting[from]--; a.waiting[from] == 0 {
		delete(a.waiting, from)
	}
}
