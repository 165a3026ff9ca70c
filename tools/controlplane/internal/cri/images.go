//go:build linux

package cri

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/image"
)

// PullImage fetches what an image reference names at its registry now.
func (s *Server) PullImage(ctx context.Context, request *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	id, err := s.images.Pull(ctx, request.Image.GetImage(), credentials(request.Auth))
	if err != nil {
		return nil, status.Error(pullCode(err), err.Error())
	}
	return &runtimeapi.PullImageResponse{ImageRef: id}, nil
}

func credentials(auth *runtimeapi.AuthConfig) authn.Authenticator {
	if auth == nil {
		return authn.Anonymous
	}
	return authn.FromConfig(authn.AuthConfig{
		Username:      auth.Username,
		Password:      auth.Password,
		Auth:          auth.Auth,
		IdentityToken: auth.IdentityToken,
		RegistryToken: auth.RegistryToken,
	})
}

// pullCode is the code for a failed pull; the kubelet shows it with the text.
func pullCode(err error) codes.Code {
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return codes.Unknown
	}
	switch answer.StatusCode {
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	}
	return codes.Unknown
}

// ImageStatus describes an image that is present; of another it says nothing.
func (s *Server) ImageStatus(_ context.Context, request *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	found, ok := s.images.Find(request.Image.GetImage())
	if !ok {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: describe(found)}, nil
}

// ListImages lists the images that are present.
func (s *Server) ListImages(_ context.Context, request *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	response := &runtimeapi.ListImagesResponse{}
	wanted := request.GetFilter().GetImage().GetImage()
	for _, found := range s.images.List() {
		if wanted != "" {
			if match, ok := s.images.Find(wanted); !ok || match.ID != found.ID {
				continue
			}
		}
		response.Images = append(response.Images, describe(found))
	}
	return response, nil
}

// describe tells the kubelet, among other things, who the image runs as: it refuses to run
// as root what its pod wants to be run by another user.
func describe(found image.Image) *runtimeapi.Image {
	described := &runtimeapi.Image{
		Id:          found.ID,
		RepoTags:    found.Tags,
		RepoDigests: found.Digests,
		Size:        found.Size,
		Spec:        &runtimeapi.ImageSpec{Image: found.ID},
	}
	user, _, _ := strings.Cut(found.Config.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		described.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		described.Username = user
	}
	return described
}

// RemoveImage deletes an image; one that is not present is no error.
func (s *Server) RemoveImage(_ context.Context, request *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	if err := s.images.Remove(request.Image.GetImage()); err != nil {
		return nil, err
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo tells how much the images take.
func (s *Server) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	var used uint64 = 1 // the kubelet waits for a value
	for _, found := range s.images.List() {
		used += found.Size
	}
	usage := []*runtimeapi.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: s.dir.Images()},
		UsedBytes:  &runtimeapi.UInt64Value{Value: used},
		InodesUsed: &runtimeapi.UInt64Value{Value: 1},
	}}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}
