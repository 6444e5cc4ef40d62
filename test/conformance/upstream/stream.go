// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"time"
)

// stream is a sequence of commands and upstream's answer to each that has one.
type stream struct {
	seed     int64
	commands bytes.Buffer
	answers  []string
}

// maker makes one stream; its habits are drawn once, so that streams differ in kind.
type maker struct {
	*stream
	random     *rand.Rand
	upstream   *upstream
	settings   settings
	containers int
	now        time.Time
	step       time.Duration
	cpuScale   int64
	memScale   int64
}

func newStream(seed int64) *stream {
	m := &maker{stream: &stream{seed: seed}, random: rand.New(rand.NewSource(seed)), settings: defaults()}
	m.containers = 1
	if m.one(4) {
		m.containers = 2 + m.random.Intn(3)
	}
	if m.one(2) {
		m.vary()
	}
	m.upstream = newUpstream(m.settings, m.containers)
	fmt.Fprintln(&m.commands, m.settings.command(m.containers))
	m.now = time.Unix(946684800+m.random.Int63n(2_000_000_000), m.random.Int63n(2)*m.random.Int63n(1e9))
	m.step = pick(m, time.Minute, time.Minute, time.Second, 15*time.Second, 10*time.Minute, time.Hour,
		7*time.Hour, time.Duration(1+m.random.Int63n(int64(time.Hour))))
	m.cpuScale = pick[int64](m, 20, 300, 4000, 100_000, 2_000_000, 100_000_000_000_000)
	m.memScale = pick[int64](m, 20_000_000, 200_000_000, 1<<30, 1<<36, 2_000_000_000_000, 100_000_000_000_000)
	if m.one(20) {
		m.estimate() // before anything was seen
	}
	for range 20 + m.random.Intn(400) {
		m.act()
	}
	m.estimate()
	m.state()
	return m.stream
}

func (m *maker) one(of int) bool {
	return m.random.Intn(of) == 0
}

func pick[T any](m *maker, choices ...T) T {
	return choices[m.random.Intn(len(choices))]
}

func (m *maker) vary() {
	c := &m.settings
	c.TargetCPUPercentile = pick(m, 0.9, 0.5, 0.99, 1, 0, m.random.Float64())
	c.LowerBoundCPUPercentile = pick(m, 0.5, 0.1, m.random.Float64())
	c.UpperBoundCPUPercentile = pick(m, 0.95, 1, m.random.Float64())
	c.TargetMemoryPercentile = pick(m, 0.9, 0.5, 1, m.random.Float64())
	c.LowerBoundMemoryPercentile = pick(m, 0.5, 0, m.random.Float64())
	c.UpperBoundMemoryPercentile = pick(m, 0.95, 1, m.random.Float64())
	c.SafetyMarginFraction = pick(m, 0.15, 0, 0.3, 1.5, m.random.Float64())
	c.ConfidenceIntervalCPU = pick(m, 24*time.Hour, time.Hour, 100*time.Second, 18*time.Minute)
	c.ConfidenceIntervalMemory = pick(m, 24*time.Hour, 7*24*time.Hour, 90*time.Minute)
	c.PodMinCPUMillicores = pick(m, 25, 0, 4007, 0.5, 7*m.random.Float64())
	c.PodMinMemoryMb = pick(m, 250, 0, 10, 33.3, 500*m.random.Float64())
	c.interval = pick(m, 24*time.Hour, time.Hour, 12*time.Hour, 7*time.Minute+3)
	c.count = pick(m, int64(8), 1, 30)
	c.cpuHalfLife = pick(m, 24*time.Hour, time.Hour, 36*time.Hour, 7*24*time.Hour, 90*time.Second)
	c.memHalf = pick(m, 24*time.Hour, 48*time.Hour, 5*time.Hour, 11*time.Minute+7*time.Second)
	c.ratio = pick(m, 1.2, 1, 1.25, 2, 1+m.random.Float64())
	c.bump = pick(m, 100*1024*1024.0, 0, 16*1024*1024, 1e9*m.random.Float64())
}

func (m *maker) act() {
	switch m.random.Intn(60) {
	case 0, 1:
		m.sample("O", m.now.Add(m.oomOffset()), m.amount(m.memScale))
	case 2, 3, 4:
		m.estimate()
	case 5:
		m.state()
	case 6:
		if m.one(3) {
			m.restart()
		}
	case 7:
		m.gap()
	case 8: // as if its clock stood still, or went backwards
		back := time.Duration(m.random.Int63n(3)) * m.step
		m.sample("C", m.now.Add(-back), m.amount(m.cpuScale))
		m.sample("M", m.now.Add(-back), m.amount(m.memScale))
	case 9:
		m.sample("M", m.now, m.amount(m.memScale))
	default:
		m.now = m.now.Add(m.step)
		m.sample("C", m.now, m.amount(m.cpuScale))
		m.sample("M", m.now, m.amount(m.memScale))
	}
}

func (m *maker) amount(scale int64) int64 {
	switch m.random.Intn(40) {
	case 0:
		return 0
	case 1:
		return -m.random.Int63n(1000)
	case 2:
		return 1
	case 3:
		return m.random.Int63n(100_000_000_000_000)
	default:
		return scale/4 + m.random.Int63n(scale-scale/4)
	}
}

// gap also goes past the hundred half-lives after which the reference is moved.
func (m *maker) gap() {
	halfLife := pick(m, m.settings.cpuHalfLife, m.settings.memHalf)
	m.now = m.now.Add(pick(m, time.Hour, 25*time.Hour, 8*24*time.Hour, halfLife/2, 50*halfLife,
		100*halfLife-m.step, 100*halfLife, 100*halfLife+1, 101*halfLife, 250*halfLife))
	if limit := time.Unix(7_000_000_000, 0); m.now.After(limit) {
		m.now = limit
	}
}

func (m *maker) oomOffset() time.Duration {
	return pick(m, 0, 30*time.Second, -time.Second, -m.settings.interval/2, -m.settings.interval,
		-m.settings.interval-1, -30*time.Hour, m.settings.interval, -time.Duration(m.random.Int63n(int64(48*time.Hour))))
}

func (m *maker) sample(kind string, t time.Time, amount int64) {
	i := m.random.Intn(m.containers)
	fmt.Fprintf(&m.commands, "%s %d %d %d\n", kind, i, t.UnixNano(), amount)
	m.answers = append(m.answers, m.upstream.sample(kind, i, t, amount))
}

func (m *maker) estimate() {
	fmt.Fprintln(&m.commands, "E")
	m.answers = append(m.answers, m.upstream.estimate())
}

func (m *maker) state() {
	fmt.Fprintln(&m.commands, "H")
	text, _ := describe("H", m.upstream.merged())
	m.answers = append(m.answers, text)
}

func (m *maker) restart() {
	now := m.now.Add(time.Duration(m.random.Int63n(int64(30 * time.Hour))))
	fmt.Fprintf(&m.commands, "R %d\n", now.UnixNano())
	m.answers = append(m.answers, m.upstream.restart(now))
}
