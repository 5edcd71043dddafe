// Thumbnails is a small web service: a picture is uploaded, a job makes a small
// one of it, and a schedule removes old ones.
//
//	thumbnails web    the pages, at ADDR
//	thumbnails        the worker
//
// Both need REDIS_URL, and keep the pictures in the folder PICTURES.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"holdfast-queue/holdfast"
)

func main() {
	slog.SetDefault(slog.New(holdfast.LogHandler(slog.NewTextHandler(os.Stderr, nil))))
	pictures := Pictures(cmp.Or(os.Getenv("PICTURES"), "pictures"))
	if err := os.MkdirAll(string(pictures), 0o700); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "web" {
		if err := serve(pictures); err != nil {
			log.Fatal(err)
		}
		return
	}
	log.Fatal(holdfast.Run(context.Background(), handlers(pictures), holdfast.Parallel(4)))
}

// serve answers until TERM or INT, and then finishes what it has begun.
func serve(pictures Pictures) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	hf := holdfast.New(holdfast.Options{})
	defer hf.Close()
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	server := &http.Server{Handler: pages(hf, pictures), ReadTimeout: 30 * time.Second}
	go func() {
		<-ctx.Done()
		patience, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		server.Shutdown(patience)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
