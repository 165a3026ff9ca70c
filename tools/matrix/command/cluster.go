package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
	"github.com/trussiumhq/trussium-operator/matrix/filelock"
)

// downTimeout bounds the end of one cluster.
const downTimeout = 90 * time.Second

func newCluster(stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Bring a cluster up or down",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var kubernetes, provider string
	withVersion := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&kubernetes, "kubernetes", "", "exact Kubernetes version (default: the provider's)")
		c.Flags().StringVar(&provider, "provider", embedded.ProviderName, "cluster provider: "+strings.Join(matrix.Providers, ", "))
		return c
	}
	cmd.AddCommand(
		withVersion(&cobra.Command{
			Use:   "build",
			Short: "Build what clusters of the provider run, which takes minutes the first time",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return buildCluster(cmd.Context(), provider, kubernetes, stdout)
			},
		}),
		withVersion(&cobra.Command{
			Use:   "up",
			Short: "Start a cluster that stays until `matrix cluster down`",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return clusterUp(cmd.Context(), provider, kubernetes, stdout)
			},
		}),
		&cobra.Command{
			Use:   "down",
			Short: "End the clusters that `cluster up` or --retain left running",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return clusterDown(cmd.Context(), stdout)
			},
		},
	)
	return cmd
}

func buildCluster(ctx context.Context, provider, kubernetes string, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	options := matrix.Options{Repository: found.Repository, CacheDir: found.CacheDir, Provider: provider}
	task := strings.TrimSpace(provider + " cluster " + kubernetes)
	screen.TaskStarted(task)
	start := time.Now()
	control, err := matrix.PrepareCluster(ctx, options, kubernetes, func(text string) { screen.TaskProgress(task, text) })
	screen.TaskEnded(task, time.Since(start), err)
	if err != nil {
		return versionError(err)
	}
	fmt.Fprintln(stdout, control)
	return nil
}

func clusterUp(ctx context.Context, provider, kubernetes string, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	options := matrix.Options{Repository: found.Repository, CacheDir: found.CacheDir, Provider: provider}
	clusters, err := options.Clusters(nil)
	if err != nil {
		return versionError(err)
	}
	const task = "cluster"
	screen.TaskStarted(task)
	start := time.Now()
	live, err := clusters.Start(ctx, cluster.Spec{
		Name: "trussium", Dir: filepath.Join(matrix.RunDir(found.Repository, found.CacheDir), "cells", "cluster-up", "cluster"), Kubernetes: kubernetes, Retain: true,
		Progress: func(text string) { screen.TaskProgress(task, text) },
	})
	screen.TaskEnded(task, time.Since(start), err)
	if err != nil {
		return versionError(err)
	}
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\n", live.Kubeconfig())
	return nil
}

func versionError(err error) error {
	if errors.Is(err, embedded.ErrVersion) || errors.Is(err, kind.ErrVersion) || errors.Is(err, matrix.ErrInput) {
		return usageError{err}
	}
	return err
}

func clusterDown(ctx context.Context, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	runs, err := filepath.Glob(filepath.Join(found.CacheDir, "runs", "*"))
	if err != nil {
		return fmt.Errorf("look for clusters: %w", err)
	}
	told := false
	tell := func(args ...any) {
		told = true
		fmt.Fprintln(stdout, args...)
	}
	var failures []error
	for _, run := range runs {
		failures = append(failures, endClusters(ctx, run, tell))
	}
	if err := errors.Join(failures...); err != nil || told {
		return err
	}
	fmt.Fprintln(stdout, "no cluster is running")
	return nil
}

// endClusters ends the clusters of one checkout, unless a matrix is using them.
func endClusters(ctx context.Context, run string, tell func(...any)) error {
	unlock, err := filelock.Try(filepath.Join(run, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		tell("left alone the clusters in", run+": a matrix is running there")
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for clusters in %s: %w", run, err)
	}
	defer unlock()
	dirs, err := filepath.Glob(filepath.Join(run, "cells", "*", "cluster"))
	if err != nil {
		return fmt.Errorf("look for clusters in %s: %w", run, err)
	}
	var failures []error
	for _, dir := range dirs {
		live, err := matrix.Attach(ctx, dir)
		if errors.Is(err, matrix.ErrNoCluster) {
			continue
		}
		if err == nil {
			stopCtx, cancel := context.WithTimeout(ctx, downTimeout)
			err = live.Stop(stopCtx)
			cancel()
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		tell("ended the cluster of", filepath.Base(filepath.Dir(dir)))
	}
	return errors.Join(failures...)
}
