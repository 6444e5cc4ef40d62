// SPDX-License-Identifier: Apache-2.0

// Conformance makes random streams of samples, OOM kills, restarts and settings, gives each to the
// upstream recommender's own packages and to pernode's estimator in profile vpa (driver.c), and
// compares every answer exactly: estimates, the bits of histogram totals, references, weights.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	driver := flag.String("driver", "", "our half's program")
	streams := flag.Int("streams", 2500, "how many streams")
	seed := flag.Int64("seed", 1, "of the first stream; the others follow")
	benchPairs := flag.Int("bench", 0, "instead: time so many pairs of samples")
	show := flag.Bool("show", false, "print the commands of the first stream and stop")
	flag.Parse()
	switch {
	case *benchPairs > 0:
		bench(*benchPairs)
	case *show:
		fmt.Print(newStream(*seed).commands.String())
	default:
		os.Exit(compareAll(*driver, *streams, *seed))
	}
}

// compareAll runs the streams in batches, so that a difference is found early and memory stays small.
func compareAll(driver string, streams int, seed int64) int {
	const batch = 100
	began := time.Now()
	passed, failed, answers := 0, 0, 0
	for first := 0; first < streams; first += batch {
		n := min(batch, streams-first)
		made := make([]*stream, n)
		var in bytes.Buffer
		for i := range made {
			made[i] = newStream(seed + int64(first+i))
			in.Write(made[i].commands.Bytes())
		}
		out, err := run(driver, &in)
		if err != nil {
			fmt.Fprintf(os.Stderr, "conformance: %s: %v\n", driver, err)
			return 1
		}
		lines := bufio.NewScanner(bytes.NewReader(out))
		lines.Buffer(nil, 1<<20)
		for _, s := range made {
			answers += len(s.answers)
			if difference := s.compare(lines); difference != "" {
				failed++
				if failed <= 5 {
					fmt.Printf("stream %d (-show -seed %d prints it): %s\n", s.seed, s.seed, difference)
				}
			} else {
				passed++
			}
		}
	}
	fmt.Printf("%d answers in %d streams compared in %.1f s\n", answers, streams, time.Since(began).Seconds())
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		return 1
	}
	return 0
}

func run(driver string, in *bytes.Buffer) ([]byte, error) {
	command := exec.Command(driver)
	command.Stdin = in
	command.Stderr = os.Stderr
	return command.Output()
}

// compare reads as many lines as there are answers, also after a difference.
func (s *stream) compare(lines *bufio.Scanner) string {
	difference := ""
	for i, want := range s.answers {
		got := "nothing"
		if lines.Scan() {
			got = lines.Text()
		}
		if got != want && difference == "" {
			difference = fmt.Sprintf("answer %d\n  upstream: %s\n  pernode:  %s", i+1, shorten(want), shorten(got))
		}
	}
	return difference
}

func shorten(s string) string {
	const most = 400
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
