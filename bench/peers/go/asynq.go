package main

import (
	"context"
	"encoding/json"

	"github.com/hibiken/asynq"
)

func asynqServe(socket string, _ int) error {
	server := asynq.NewServer(asynq.RedisClientOpt{Network: "unix", Addr: socket},
		asynq.Config{Concurrency: parallel, LogLevel: asynq.WarnLevel})
	mux := asynq.NewServeMux()
	mux.HandleFunc("peer", func(_ context.Context, task *asynq.Task) error {
		var args nothing
		return json.Unmarshal(task.Payload(), &args)
	})
	return server.Run(mux)
}

func asynqFill(socket string, jobs int) error {
	client := asynq.NewClient(asynq.RedisClientOpt{Network: "unix", Addr: socket})
	return fill(jobs, func() error {
		payload, err := json.Marshal(nothing{text})
		if err != nil {
			return err
		}
		_, err = client.Enqueue(asynq.NewTask("peer", payload))
		return err
	})
}
