package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast-queue/holdfast/holdfasttest"
)

func request(t *testing.T, server *httptest.Server, method, path string, body []byte) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequest(method, server.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var value map[string]any
	json.NewDecoder(answer.Body).Decode(&value)
	return answer.StatusCode, value
}

func TestAnUploadEnqueuesOneJob(t *testing.T) {
	fake, pictures := holdfasttest.New(), Pictures(t.TempDir())
	server := httptest.NewServer(pages(fake.Client(), pictures))
	defer server.Close()
	for _, outcome := range []string{"new", "exists"} {
		status, value := request(t, server, "POST", "/pictures", []byte("not a picture"))
		if status != http.StatusAccepted || value["outcome"] != outcome {
			t.Errorf("found %d %v", status, value)
		}
	}
	jobs := fake.Of("picture.shrink")
	if len(jobs) != 1 || jobs[0].Queue != "pictures" || jobs[0].Args.(Shrink).Picture != jobs[0].ID {
		t.Errorf("found %+v", jobs)
	}
	if status, _ := request(t, server, "POST", "/pictures", make([]byte, uploadMax+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("found %d", status)
	}
	for _, path := range []string{"/pictures/other", "/pictures/..%2fsecret/small"} {
		if status, _ := request(t, server, "GET", path, nil); status != http.StatusNotFound {
			t.Errorf("%s: found %d", path, status)
		}
	}
	if _, err := fake.RunAll(context.Background(), handlers(pictures)); !errors.Is(err, image.ErrFormat) {
		t.Errorf("found %v", err)
	}
}

func TestAPictureIsShrunk(t *testing.T) {
	pictures := Pictures(t.TempDir())
	large := image.NewRGBA(image.Rect(0, 0, 1000, 500))
	for i := range large.Pix {
		large.Pix[i] = byte(i % 4 * 85) // 0, 85, 170, 255
	}
	var file bytes.Buffer
	if err := png.Encode(&file, large); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pictures.path("a"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	job, told := holdfasttest.NewJob(Shrink{"a"})
	size, err := pictures.shrink(context.Background(), job)
	if err != nil || size != (Size{200, 100}) {
		t.Fatalf("found %v, %v", size, err)
	}
	if percent, _ := told.LastProgress(); percent != 50 {
		t.Errorf("found %d", percent)
	}
	written, err := os.ReadFile(pictures.path("a.small"))
	if err != nil {
		t.Fatal(err)
	}
	small, err := png.Decode(bytes.NewReader(written))
	if err != nil || color.RGBAModel.Convert(small.At(100, 50)) != (color.RGBA{0, 85, 170, 255}) {
		t.Errorf("found %v, %v", small.At(100, 50), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := pictures.shrink(ctx, job); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v", err)
	}
}

func TestOldPicturesAreRemoved(t *testing.T) {
	pictures := Pictures(t.TempDir())
	for name, age := range map[string]time.Duration{"new": 0, "old": 8 * 24 * time.Hour} {
		if err := os.WriteFile(pictures.path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(pictures.path(name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	job, _ := holdfasttest.NewJob(Tidy{})
	if err := pictures.tidy(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(string(pictures))
	if len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), "new") {
		t.Errorf("found %v", entries)
	}
}
