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
		return err
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
		return err
	}
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\n", live.Kubeconfig())
	return nil
}

func clusterDown(ctx context.Context, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	dirs, err := filepath.Glob(filepath.Join(found.CacheDir, "runs", "*", "cells", "*", "cluster"))
	if err != nil {
		return fmt.Errorf("look for clusters: %w", err)
	}
	ended := 0
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
		ended++
		fmt.Fprintln(stdout, "ended the cluster of", filepath.Base(filepath.Dir(dir)))
	}
	if ended == 0 && len(failures) == 0 {
		fmt.Fprintln(stdout, "no cluster is running")
	}
	return errors.Join(failures...)
}
