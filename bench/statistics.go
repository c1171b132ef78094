package main

import "slices"

// ratios divides pair by pair.
func ratios(ours, theirs []float64) []float64 {
	pairs := make([]float64, min(len(ours), len(theirs)))
	for i := range pairs {
		pairs[i] = ours[i] / theirs[i]
	}
	return pairs
}

// differences subtracts pair by pair.
func differences(more, less []float64) []float64 {
	pairs := make([]float64, min(len(more), len(less)))
	for i := range pairs {
		pairs[i] = more[i] - less[i]
	}
	return pairs
}

// median of values, of which there is at least one.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
