# frozen_string_literal: true

# sidekiq.rb - Sidekiq as one of the clients that README.md describes.
require "json"
require "sidekiq"

QUEUE = "default"
CONCURRENCY = 10
BATCH = 1000 # jobs in a call: what Sidekiq recommends
LEAD_S = 0.5 # from enqueueing delayed jobs to when the first is due
POLL_S = 1   # how often, on average, it looks for delayed jobs; its default is 5

def now_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

def payload(mark) = mark.to_s.rjust(20, "0").ljust(100, "x")

def say(line)
  $stdout.write("#{line}\n")
  $stdout.flush
end

# What is counted of a rate: the first tenth of the jobs warms up.
class Rate
  def initialize(jobs)
    @jobs = jobs
    @warm_up = jobs / 10
    @done = 0
    @lock = Mutex.new
    @over = Queue.new
  end

  attr_reader :warm_up

  def counted = @jobs - @warm_up

  def begin = @since_ns = now_ns

  def count
    @lock.synchronize do
      @done += 1
      self.begin if @done == @warm_up
      @over << now_ns if @done == @jobs
    end
  end

  def wait = @over.pop

  def tell(until_ns)
    say(JSON.generate(per_s: counted * 1e9 / (until_ns - @since_ns)))
  end
end

class Job
  include Sidekiq::Worker

  sidekiq_options retry: 1, queue: QUEUE

  class << self
    attr_accessor :on_job
  end

  def perform(text) = self.class.on_job.call(text)
end

def push(args, **more) = Sidekiq::Client.push_bulk({"class" => Job, "args" => args}.merge(more))

def push_alike(n)
  args = Array.new(BATCH) { [payload(0)] }
  while n.positive?
    push(n < BATCH ? args.first(n) : args)
    n -= BATCH
  end
end

def fill(n, _ms)
  rate = Rate.new(n)
  push_alike(rate.warm_up)
  rate.begin
  push_alike(rate.counted)
  rate.tell(now_ns)
end

def trickle(n, _ms)
  n.times do
    sleep(0.002 + rand * 0.006)
    Job.perform_async(payload(now_ns))
  end
end

def delay(n, ms)
  first_ms = ((Time.now.to_f + LEAD_S) * 1000).to_i
  dues = Array.new(n) { first_ms + rand(ms) }
  args = dues.map { |due_ms| [payload(due_ms * 1_000_000)] }
  push(args, "at" => dues.map { |due_ms| due_ms / 1000.0 })
end

def serve
  launcher = Sidekiq::Launcher.new(Sidekiq.options)
  launcher.run
  launcher
end

def drain(n, _ms)
  rate = Rate.new(n)
  Job.on_job = ->(_text) { rate.count }
  serve
  rate.tell(rate.wait)
end

def say_start(text)
  now = now_ns
  say("#{text[0, 20]} #{now}")
end

def work(_n, _ms)
  Job.on_job = ->(text) { say_start(text) }
  serve
  say("ready")
  sleep
end

def hold(_n, _ms)
  Job.on_job = lambda do |text|
    say_start(text)
    sleep
  end
  serve
  say("ready")
  sleep
end

# As it is without more than its own package: the driver in Ruby, which warns of each request.
PLAIN = ENV.key?("PEER_PLAIN")

def driver
  return :ruby if PLAIN

  require "hiredis" # in C, and faster
  :hiredis
rescue LoadError
  :ruby
end

def version(_n, _ms)
  require "sidekiq/version"
  client = "redis #{Redis::VERSION} with the driver #{driver}"
  say("#{Sidekiq::VERSION}, #{client}, Ruby #{RUBY_VERSION}")
end

# Two lines for each job would cost more than the job.
Sidekiq.logger = Sidekiq::Logger.new($stderr, level: Logger::WARN)
verb, socket, n, ms = ARGV
redis = {url: "unix://#{socket}", driver: driver}
if %w[drain work hold].include?(verb)
  require "sidekiq/cli" # from here on it is a server, which may have more connections
  require "sidekiq/launcher"
  Sidekiq.configure_server { |config| config.redis = redis }
  Sidekiq.options.merge!(concurrency: CONCURRENCY, queues: [QUEUE], poll_interval_average: POLL_S)
else
  Sidekiq.configure_client { |config| config.redis = redis }
end
Redis.silence_deprecations = !PLAIN # so does one for each request, by this pair of versions
send(verb, n.to_i, ms.to_i)
$stdout.flush
exit!(0)
