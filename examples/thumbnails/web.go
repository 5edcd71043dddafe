package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"holdfast-queue/holdfast"
)

const uploadMax = 10 << 20

var pictureName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// pages answers:
//
//	POST /pictures                the picture is the body; the answer names it
//	GET  /pictures/{name}         what happened to it
//	GET  /pictures/{name}/small   the small picture
func pages(hf *holdfast.Client, pictures Pictures) http.Handler {
	s := &site{hf, pictures}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pictures", s.upload)
	mux.HandleFunc("GET /pictures/{name}", s.show)
	mux.HandleFunc("GET /pictures/{name}/small", s.small)
	return mux
}

type site struct {
	hf       *holdfast.Client
	pictures Pictures
}

// upload stores a picture under the hash of its bytes, which is also the id of the
// job. So an upload that is sent twice makes one job, while that is there.
func (s *site) upload(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, uploadMax))
	if err != nil {
		answer(w, http.StatusRequestEntityTooLarge, map[string]string{"error": "expected at most 10 MiB"})
		return
	}
	sum := sha256.Sum256(body)
	name := hex.EncodeToString(sum[:])
	err = s.pictures.put(name, func(out io.Writer) error {
		_, err := out.Write(body)
		return err
	})
	if err != nil {
		fail(w, r, err)
		return
	}
	ref, err := holdfast.Enqueue(r.Context(), s.hf, Shrink{name}, holdfast.ID(name), holdfast.ReplaceDead())
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Location", "/pictures/"+name)
	answer(w, http.StatusAccepted, map[string]string{"picture": name, "outcome": string(ref.Outcome)})
}

// show waits a moment for a job that is about to end.
func (s *site) show(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !pictureName.MatchString(name) {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	size, err := holdfast.Result[Size](ctx, s.hf.Ref(name, "pictures"))
	var dead *holdfast.JobDeadError
	switch {
	case err == nil:
		answer(w, http.StatusOK, map[string]any{"state": "done", "size": size, "small": "/pictures/" + name + "/small"})
	case errors.As(err, &dead):
		answer(w, http.StatusOK, map[string]any{"state": "failed", "error": dead.Text})
	case errors.Is(err, holdfast.ErrJobUnknown):
		http.NotFound(w, r)
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, holdfast.ErrNoAnswer):
		answer(w, http.StatusOK, map[string]any{"state": "waiting"})
	default:
		fail(w, r, err)
	}
}

func (s *site) small(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !pictureName.MatchString(name) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	http.ServeFile(w, r, s.pictures.path(name+".small"))
}

// fail asks to try again: an upload that comes twice does no harm.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	slog.ErrorContext(r.Context(), "request", "path", r.URL.Path, "error", err)
	w.Header().Set("Retry-After", "5")
	answer(w, http.StatusServiceUnavailable, map[string]string{"error": "try again: the same picture makes one job"})
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value)
}
