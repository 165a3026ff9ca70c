package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/filelock"
)

// downTimeout bounds the end of one cluster.
const downTimeout = 30 * time.Second

func newCluster(stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Bring an embedded cluster up or down",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var kubernetes string
	withVersion := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&kubernetes, "kubernetes", embedded.DefaultKubernetes, "exact Kubernetes version")
		return c
	}
	cmd.AddCommand(
		withVersion(&cobra.Command{
			Use:   "build",
			Short: "Build the embedded cluster's program, which takes minutes the first time",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return buildCluster(cmd.Context(), kubernetes, stdout)
			},
		}),
		withVersion(&cobra.Command{
			Use:   "up",
			Short: "Start an embedded cluster that stays until `matrix cluster down`",
			Args:  noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return clusterUp(cmd.Context(), kubernetes, stdout)
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

func buildCluster(ctx context.Context, kubernetes string, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	task := "embedded cluster, Kubernetes " + kubernetes
	screen.TaskStarted(task)
	start := time.Now()
	path, _, err := embedded.Build(ctx, found.Repository, found.CacheDir, kubernetes, func(text string) { screen.TaskProgress(task, text) })
	screen.TaskEnded(task, time.Since(start), err)
	if err != nil {
		return versionError(err)
	}
	fmt.Fprintln(stdout, path)
	return nil
}

func clusterUp(ctx context.Context, kubernetes string, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	const task = "cluster"
	screen.TaskStarted(task)
	start := time.Now()
	live, err := (embedded.Provider{Repository: found.Repository, CacheDir: found.CacheDir}).Start(ctx, cluster.Spec{
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
	if errors.Is(err, embedded.ErrVersion) {
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
		live, err := embedded.Attach(ctx, dir)
		if errors.Is(err, embedded.ErrNotRunning) {
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
