// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	vpa_types "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/logic"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/model"
)

// settings are what a stream may vary.
type settings struct {
	logic.RecommendationConfig
	interval             time.Duration
	count                int64
	cpuHalfLife, memHalf time.Duration
	ratio, bump          float64
}

func defaults() settings {
	return settings{
		RecommendationConfig: logic.RecommendationConfig{
			SafetyMarginFraction: 0.15, PodMinCPUMillicores: 25, PodMinMemoryMb: 250,
			TargetCPUPercentile: 0.9, LowerBoundCPUPercentile: 0.5, UpperBoundCPUPercentile: 0.95,
			TargetMemoryPercentile: 0.9, LowerBoundMemoryPercentile: 0.5, UpperBoundMemoryPercentile: 0.95,
			ConfidenceIntervalCPU: 24 * time.Hour, ConfidenceIntervalMemory: 24 * time.Hour,
		},
		interval: 24 * time.Hour, count: 8, cpuHalfLife: 24 * time.Hour, memHalf: 24 * time.Hour,
		ratio: 1.2, bump: 100 * 1024 * 1024,
	}
}

func (c settings) command(containers int) string {
	words := []string{"N", strconv.Itoa(containers)}
	float := func(all ...float64) {
		for _, f := range all {
			words = append(words, strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	duration := func(all ...time.Duration) {
		for _, d := range all {
			words = append(words, strconv.FormatInt(int64(d), 10))
		}
	}
	float(c.TargetCPUPercentile, c.LowerBoundCPUPercentile, c.UpperBoundCPUPercentile)
	float(c.TargetMemoryPercentile, c.LowerBoundMemoryPercentile, c.UpperBoundMemoryPercentile)
	float(c.SafetyMarginFraction)
	duration(c.ConfidenceIntervalCPU, c.ConfidenceIntervalMemory)
	float(c.PodMinCPUMillicores, c.PodMinMemoryMb)
	duration(c.interval)
	words = append(words, strconv.FormatInt(c.count, 10))
	duration(c.cpuHalfLife, c.memHalf)
	float(c.ratio, c.bump)
	return strings.Join(words, " ")
}

// upstream is the other half: live containers with their aggregates, and what a checkpoint held.
type upstream struct {
	recommender logic.PodResourceRecommender
	aggregates  []*model.AggregateContainerState
	containers  []*model.ContainerState
	initial     *model.AggregateContainerState
}

func newUpstream(c settings, containers int) *upstream {
	model.InitializeAggregationsConfig(model.NewAggregationsConfig(
		c.interval, c.count, c.memHalf, c.cpuHalfLife, c.ratio, c.bump))
	u := &upstream{recommender: logic.CreatePodResourceRecommender(c.RecommendationConfig)}
	for range containers {
		u.addContainer()
	}
	return u
}

func (u *upstream) addContainer() {
	aggregate := model.NewAggregateContainerState()
	u.aggregates = append(u.aggregates, aggregate)
	u.containers = append(u.containers, model.NewContainerState(nil, aggregate))
}

func (u *upstream) sample(kind string, i int, t time.Time, amount int64) string {
	taken := 0
	switch kind {
	case "O":
		if u.containers[i].RecordOOM(t, model.ResourceAmount(amount)) == nil {
			taken = 1
		}
	default:
		resource := model.ResourceCPU
		if kind == "M" {
			resource = model.ResourceMemory
		}
		if u.containers[i].AddSample(&model.ContainerUsageSample{
			MeasureStart: t, Usage: model.ResourceAmount(amount), Resource: resource}) {
			taken = 1
		}
	}
	return fmt.Sprintf("%s %d", kind, taken)
}

func (u *upstream) merged() *model.AggregateContainerState {
	all := model.NewAggregateContainerState()
	for _, a := range u.aggregates {
		all.MergeContainerState(a)
	}
	if u.initial != nil {
		all.MergeContainerState(u.initial)
	}
	return all
}

func (u *upstream) estimate() string {
	r := u.recommender.GetRecommendedPodResources(
		model.ContainerNameToAggregateStateMap{"c": u.merged()})["c"]
	var words []string
	for _, amounts := range []model.Resources{r.Target, r.LowerBound, r.UpperBound} {
		for _, resource := range []model.ResourceName{model.ResourceCPU, model.ResourceMemory} {
			// Where a minimum of 0 lets a conversion of NaN through, it is whatever the
			// processor makes of it; ours says 0.
			words = append(words, strconv.FormatInt(max(0, int64(amounts[resource])), 10))
		}
	}
	return "E " + strings.Join(words, " ")
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return strconv.FormatInt(t.Unix(), 10) + "000000000"
}

// describe goes through JSON, as a checkpoint does, and returns what came back.
func describe(kind string, a *model.AggregateContainerState) (string, *vpa_types.VerticalPodAutoscalerCheckpointStatus) {
	saved, err := a.SaveToCheckpoint()
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(saved)
	if err != nil {
		panic(err)
	}
	back := &vpa_types.VerticalPodAutoscalerCheckpointStatus{}
	if err := json.Unmarshal(text, back); err != nil {
		panic(err)
	}
	words := []string{kind, strconv.Itoa(back.TotalSamplesCount),
		instant(back.FirstSampleStart.Time), instant(back.LastSampleStart.Time)}
	for _, h := range []vpa_types.HistogramCheckpoint{back.CPUHistogram, back.MemoryHistogram} {
		words = append(words, "|", instant(h.ReferenceTimestamp.Time),
			fmt.Sprintf("%016x", math.Float64bits(h.TotalWeight)))
		var buckets []int
		for b := range h.BucketWeights {
			buckets = append(buckets, b)
		}
		slices.Sort(buckets)
		for _, b := range buckets {
			words = append(words, fmt.Sprintf("%d:%d", b, h.BucketWeights[b]))
		}
	}
	return strings.Join(words, " "), back
}

// restart saves everything without the peaks of running intervals, forgets all, and loads it.
func (u *upstream) restart(now time.Time) string {
	all := u.merged()
	for _, c := range u.containers {
		if now.Before(c.WindowEnd) {
			all.AggregateMemoryPeaks.SubtractSample(
				model.BytesFromMemoryAmount(c.GetMaxMemoryPeak()), 1.0, c.WindowEnd)
		}
	}
	text, saved := describe("R", all)
	n := len(u.containers)
	u.aggregates, u.containers = nil, nil
	for range n {
		u.addContainer()
	}
	u.initial = model.NewAggregateContainerState()
	if err := u.initial.LoadFromCheckpoint(saved); err != nil {
		panic(err)
	}
	return text
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bench prints nanoseconds of CPU per pair of samples, and two numbers that must equal the other half's.
func bench(pairs int) {
	u := newUpstream(defaults(), 1)
	x := uint32(42)
	next := func() int64 {
		x = (x*1103515245 + 12345) & 0x7fffffff
		return int64(x >> 8)
	}
	began := cpuTime()
	var target int64
	for i := range pairs {
		t := time.Unix(1767225600+int64(i)*60, 0)
		u.containers[0].AddSample(&model.ContainerUsageSample{
			MeasureStart: t, Usage: model.ResourceAmount(next() % 2000), Resource: model.ResourceCPU})
		u.containers[0].AddSample(&model.ContainerUsageSample{
			MeasureStart: t, Usage: model.ResourceAmount(500000000 + next()%300000), Resource: model.ResourceMemory})
		if i%60 == 59 {
			r := u.recommender.GetRecommendedPodResources(
				model.ContainerNameToAggregateStateMap{"c": u.aggregates[0]})
			target = int64(r["c"].Target[model.ResourceCPU])
		}
	}
	elapsed := cpuTime() - began
	saved, err := u.aggregates[0].SaveToCheckpoint()
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f %s %d\n", float64(elapsed.Nanoseconds())/float64(pairs),
		strconv.FormatFloat(saved.CPUHistogram.TotalWeight, 'g', 17, 64), target)
}
