package dns

import (
	"context"
	"errors"
	"fmt"
	"log"

	miekg "github.com/miekg/dns"
)

// Serve answers on address, over UDP and TCP, until ctx ends.
func Serve(ctx context.Context, address string, records Records) error {
	handler := miekg.HandlerFunc(func(w miekg.ResponseWriter, query *miekg.Msg) {
		answer := records.Answer(query)
		if w.RemoteAddr().Network() == "udp" {
			answer.Truncate(miekg.MinMsgSize) // the client asks again over TCP
		}
		if err := w.WriteMsg(answer); err != nil {
			log.Printf("answer %s: %v", w.RemoteAddr(), err)
		}
	})
	failed := make(chan error, 2)
	var servers []*miekg.Server
	for _, network := range []string{"udp", "tcp"} {
		server := &miekg.Server{Addr: address, Net: network, Handler: handler}
		servers = append(servers, server)
		go func() {
			if err := server.ListenAndServe(); err != nil {
				failed <- fmt.Errorf("serve DNS on %s %s: %w", network, address, err)
			}
		}()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	for _, server := range servers {
		if shutdownErr := server.Shutdown(); err != nil {
			err = errors.Join(err, shutdownErr)
		}
	}
	return err
}
