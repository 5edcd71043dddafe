module holdfast-queue/holdfast/command

go 1.23

require holdfast-queue/holdfast v0.2.0

replace holdfast-queue/holdfast => ../
