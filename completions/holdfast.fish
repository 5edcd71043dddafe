# fish completion for holdfast, made by `holdfast help --completion fish`

# The options of a command that take a value.
function __holdfast_valued
    printf '%s\n' --config -c --redis --namespace
    switch "$argv"
        case 'enqueue' 'enqueue *'
            printf '%s\n' --queue -q --in --at --id --max-attempts --timeout --bulk --run
        case 'job show' 'job show *'
            printf '%s\n' --queue -q
        case 'job list' 'job list *'
            printf '%s\n' --queue -q --state --limit --after
        case 'job why' 'job why *'
            printf '%s\n' --queue -q
        case 'job retry' 'job retry *'
            printf '%s\n' --queue -q
        case 'job cancel' 'job cancel *'
            printf '%s\n' --queue -q
        case 'job delete' 'job delete *'
            printf '%s\n' --queue -q
        case 'dead list' 'dead list *'
            printf '%s\n' --queue -q --type --since --limit --after
        case 'dead retry' 'dead retry *'
            printf '%s\n' --queue -q --type --since --limit --rate
        case 'dead purge' 'dead purge *'
            printf '%s\n' --queue -q --type --since --limit
        case 'queue list' 'queue list *'
            printf '%s\n' --limit --after
        case 'queue limit' 'queue limit *'
            printf '%s\n' --max-running --rate
        case 'queue purge' 'queue purge *'
            printf '%s\n'
        case 'lock' 'lock *'
            printf '%s\n' --permits --wait -w --conflict-exit-code -E --ttl --grace --max-hold --wait-replicas
        case 'locks list' 'locks list *'
            printf '%s\n' --limit --after
        case 'locks show' 'locks show *'
            printf '%s\n' --limit
        case 'locks release' 'locks release *'
            printf '%s\n' --owner
        case 'locks revoke' 'locks revoke *'
            printf '%s\n' --owner
        case 'locks fence-check' 'locks fence-check *'
            printf '%s\n' --owner --remember
        case 'workers' 'workers *'
            printf '%s\n' --limit --after
        case 'worker' 'worker *'
            printf '%s\n' --queue -q --concurrency -n
        case 'doctor' 'doctor *'
            printf '%s\n' --queue -q
        case 'script enqueue' 'script enqueue *'
            printf '%s\n'
        case 'demo' 'demo *'
            printf '%s\n' --svg
        case 'bench' 'bench *'
            printf '%s\n' --jobs --payload --concurrency -n
    end
end

# The words of the command so far, without options and their values.
function __holdfast_words
    set -l words (commandline -opc)
    set -l command
    set -l skip no
    set -e words[1]
    for word in $words
        if test $skip = yes
            set skip no
        else if contains -- $word (__holdfast_valued $command)
            set skip yes
        else if not string match -q -- '-*' $word
            set -a command $word
        end
    end
    echo "$command"
end

function __holdfast_after # exactly these words
    set -l words (__holdfast_words)
    test "$words" = "$argv"
end

function __holdfast_in # these words, and perhaps operands
    set -l words (__holdfast_words)
    test "$words" = "$argv"; or string match -q -- "$argv *" "$words"
end

complete -c holdfast -f
complete -c holdfast -l config -s c -r -F -d 'the configuration file'
complete -c holdfast -l redis -x -d 'where Redis is'
complete -c holdfast -l namespace -x -d 'what every key in Redis begins with'
complete -c holdfast -l json -d 'print one JSON object per line'
complete -c holdfast -l help -s h -d 'print this'
complete -c holdfast -n '__holdfast_after' -a enqueue -d 'put a job into a queue'
complete -c holdfast -n '__holdfast_after help' -a enqueue -d 'put a job into a queue'
complete -c holdfast -n '__holdfast_after' -a job -d 'show, list, why, retry, cancel, delete'
complete -c holdfast -n '__holdfast_after help' -a job -d 'show, list, why, retry, cancel, delete'
complete -c holdfast -n '__holdfast_after' -a dead -d 'list, retry, purge'
complete -c holdfast -n '__holdfast_after help' -a dead -d 'list, retry, purge'
complete -c holdfast -n '__holdfast_after' -a queue -d 'list, show, pause, resume, limit, purge'
complete -c holdfast -n '__holdfast_after help' -a queue -d 'list, show, pause, resume, limit, purge'
complete -c holdfast -n '__holdfast_after' -a lock -d 'run a command while holding a lock, as flock(1) does'
complete -c holdfast -n '__holdfast_after help' -a lock -d 'run a command while holding a lock, as flock(1) does'
complete -c holdfast -n '__holdfast_after' -a locks -d 'list, show, release, revoke, fence-check'
complete -c holdfast -n '__holdfast_after help' -a locks -d 'list, show, release, revoke, fence-check'
complete -c holdfast -n '__holdfast_after' -a workers -d 'list the workers that live, and those that went silent'
complete -c holdfast -n '__holdfast_after help' -a workers -d 'list the workers that live, and those that went silent'
complete -c holdfast -n '__holdfast_after' -a worker -d 'run jobs with the programs of the configuration file'
complete -c holdfast -n '__holdfast_after help' -a worker -d 'run jobs with the programs of the configuration file'
complete -c holdfast -n '__holdfast_after' -a check -d 'check a configuration file without running anything'
complete -c holdfast -n '__holdfast_after help' -a check -d 'check a configuration file without running anything'
complete -c holdfast -n '__holdfast_after' -a doctor -d 'check that what is in Redis agrees with itself, and put it right'
complete -c holdfast -n '__holdfast_after help' -a doctor -d 'check that what is in Redis agrees with itself, and put it right'
complete -c holdfast -n '__holdfast_after' -a script -d 'enqueue'
complete -c holdfast -n '__holdfast_after help' -a script -d 'enqueue'
complete -c holdfast -n '__holdfast_after' -a demo -d 'see the promises kept: 300 jobs, and a worker that is killed'
complete -c holdfast -n '__holdfast_after help' -a demo -d 'see the promises kept: 300 jobs, and a worker that is killed'
complete -c holdfast -n '__holdfast_after' -a bench -d 'measure how fast it is here, beside a bare loop of the same scripts'
complete -c holdfast -n '__holdfast_after help' -a bench -d 'measure how fast it is here, beside a bare loop of the same scripts'
complete -c holdfast -n '__holdfast_after' -a version -d 'print the version'
complete -c holdfast -n '__holdfast_after help' -a version -d 'print the version'
complete -c holdfast -n '__holdfast_after' -a help -d 'print the list of commands, or the help of one'
complete -c holdfast -n '__holdfast_after help' -a help -d 'print the list of commands, or the help of one'
complete -c holdfast -n '__holdfast_after job' -a show -d 'show one job, whichever queue it is in'
complete -c holdfast -n '__holdfast_after help job' -a show -d 'show one job, whichever queue it is in'
complete -c holdfast -n '__holdfast_after job' -a list -d 'list the jobs of a queue, page by page'
complete -c holdfast -n '__holdfast_after help job' -a list -d 'list the jobs of a queue, page by page'
complete -c holdfast -n '__holdfast_after job' -a why -d 'say what keeps a job, and what can be done about it'
complete -c holdfast -n '__holdfast_after help job' -a why -d 'say what keeps a job, and what can be done about it'
complete -c holdfast -n '__holdfast_after job' -a retry -d 'run a dead or waiting job now'
complete -c holdfast -n '__holdfast_after help job' -a retry -d 'run a dead or waiting job now'
complete -c holdfast -n '__holdfast_after job' -a cancel -d 'take a waiting job away, or ask a running one to end'
complete -c holdfast -n '__holdfast_after help job' -a cancel -d 'take a waiting job away, or ask a running one to end'
complete -c holdfast -n '__holdfast_after job' -a delete -d 'remove a waiting or dead job for ever'
complete -c holdfast -n '__holdfast_after help job' -a delete -d 'remove a waiting or dead job for ever'
complete -c holdfast -n '__holdfast_after dead' -a list -d 'list dead jobs and why they died, page by page'
complete -c holdfast -n '__holdfast_after help dead' -a list -d 'list dead jobs and why they died, page by page'
complete -c holdfast -n '__holdfast_after dead' -a retry -d 'run a dead job again, or all that are dead now'
complete -c holdfast -n '__holdfast_after help dead' -a retry -d 'run a dead job again, or all that are dead now'
complete -c holdfast -n '__holdfast_after dead' -a purge -d 'remove a dead job for ever, or all that are dead now'
complete -c holdfast -n '__holdfast_after help dead' -a purge -d 'remove a dead job for ever, or all that are dead now'
complete -c holdfast -n '__holdfast_after queue' -a list -d 'list all queues and how many jobs they hold'
complete -c holdfast -n '__holdfast_after help queue' -a list -d 'list all queues and how many jobs they hold'
complete -c holdfast -n '__holdfast_after queue' -a show -d 'show all there is to know of a queue, or of each'
complete -c holdfast -n '__holdfast_after help queue' -a show -d 'show all there is to know of a queue, or of each'
complete -c holdfast -n '__holdfast_after queue' -a pause -d 'start no more of its jobs'
complete -c holdfast -n '__holdfast_after help queue' -a pause -d 'start no more of its jobs'
complete -c holdfast -n '__holdfast_after queue' -a resume -d 'start its jobs again'
complete -c holdfast -n '__holdfast_after help queue' -a resume -d 'start its jobs again'
complete -c holdfast -n '__holdfast_after queue' -a limit -d 'limit how many of its jobs run, or how fast they are started'
complete -c holdfast -n '__holdfast_after help queue' -a limit -d 'limit how many of its jobs run, or how fast they are started'
complete -c holdfast -n '__holdfast_after queue' -a purge -d 'remove all its waiting and dead jobs for ever'
complete -c holdfast -n '__holdfast_after help queue' -a purge -d 'remove all its waiting and dead jobs for ever'
complete -c holdfast -n '__holdfast_after locks' -a list -d 'list the locks that are held or waited for'
complete -c holdfast -n '__holdfast_after help locks' -a list -d 'list the locks that are held or waited for'
complete -c holdfast -n '__holdfast_after locks' -a show -d 'show who holds a lock until when, and who waits for it'
complete -c holdfast -n '__holdfast_after help locks' -a show -d 'show who holds a lock until when, and who waits for it'
complete -c holdfast -n '__holdfast_after locks' -a release -d 'take a lock away from who holds it'
complete -c holdfast -n '__holdfast_after help locks' -a release -d 'take a lock away from who holds it'
complete -c holdfast -n '__holdfast_after locks' -a revoke -d 'ask who holds a lock to give it back'
complete -c holdfast -n '__holdfast_after help locks' -a revoke -d 'ask who holds a lock to give it back'
complete -c holdfast -n '__holdfast_after locks' -a fence-check -d 'may the holder of a fence still write? exit 0: yes, 1: no'
complete -c holdfast -n '__holdfast_after help locks' -a fence-check -d 'may the holder of a fence still write? exit 0: yes, 1: no'
complete -c holdfast -n '__holdfast_after script' -a enqueue -d 'print the script that puts jobs into a queue, for other languages'
complete -c holdfast -n '__holdfast_after help script' -a enqueue -d 'print the script that puts jobs into a queue, for other languages'
complete -c holdfast -n '__holdfast_in enqueue' -l queue -s q -x -d 'the queue'
complete -c holdfast -n '__holdfast_in enqueue' -l in -x -d 'not before so long from now: 10s, 5m, 2h, 1d'
complete -c holdfast -n '__holdfast_in enqueue' -l at -x -d 'not before this time: 2030-01-31T08:00:00Z, or @SECONDS since 1970'
complete -c holdfast -n '__holdfast_in enqueue' -l id -x -d 'the job\'s id: while a job of this id exists, another is not accepted'
complete -c holdfast -n '__holdfast_in enqueue' -l max-attempts -x -d 'the job is dead after so many failed attempts'
complete -c holdfast -n '__holdfast_in enqueue' -l timeout -x -d 'an attempt has failed after so long'
complete -c holdfast -n '__holdfast_in enqueue' -l wait -d 'until the job is done (exit 0) or dead (exit 1)'
complete -c holdfast -n '__holdfast_in enqueue' -l bulk -r -F -d 'jobs from a file, one JSON object per line'
complete -c holdfast -n '__holdfast_in enqueue' -l run -x -d 'with --bulk: send the file again as the run R'
complete -c holdfast -n '__holdfast_in enqueue' -l atomic -d 'with --bulk: all jobs or none'
complete -c holdfast -n '__holdfast_in job show' -l queue -s q -x -d 'the queue it is in'
complete -c holdfast -n '__holdfast_in job show' -l payload -d 'print the payload, as it is, and nothing else'
complete -c holdfast -n '__holdfast_in job list' -l queue -s q -x -d 'the queue'
complete -c holdfast -n '__holdfast_in job list' -l state -x -a 'ready delayed retry running dead' -d 'ready, delayed, retry (delayed after a failed attempt), running or dead'
complete -c holdfast -n '__holdfast_in job list' -l limit -x -d 'at most so many jobs'
complete -c holdfast -n '__holdfast_in job list' -l after -x -d 'go on after this job: the last one of the page before'
complete -c holdfast -n '__holdfast_in job why' -l queue -s q -x -d 'the queue it is in'
complete -c holdfast -n '__holdfast_in job retry' -l queue -s q -x -d 'the queue it is in'
complete -c holdfast -n '__holdfast_in job cancel' -l queue -s q -x -d 'the queue it is in'
complete -c holdfast -n '__holdfast_in job cancel' -l wait -d 'until it has ended: cancelled or done (exit 0), or dead (exit 1)'
complete -c holdfast -n '__holdfast_in job delete' -l queue -s q -x -d 'the queue it is in'
complete -c holdfast -n '__holdfast_in job delete' -l yes -d 'do it without asking'
complete -c holdfast -n '__holdfast_in dead list' -l queue -s q -x -d 'the queue'
complete -c holdfast -n '__holdfast_in dead list' -l type -x -d 'only jobs of this type'
complete -c holdfast -n '__holdfast_in dead list' -l since -x -d 'only jobs that died within so long'
complete -c holdfast -n '__holdfast_in dead list' -l limit -x -d 'at most so many jobs'
complete -c holdfast -n '__holdfast_in dead list' -l after -x -d 'go on after this job: the last one of the page before'
complete -c holdfast -n '__holdfast_in dead retry' -l queue -s q -x -d 'the queue'
complete -c holdfast -n '__holdfast_in dead retry' -l type -x -d 'only jobs of this type'
complete -c holdfast -n '__holdfast_in dead retry' -l since -x -d 'only jobs that died within so long'
complete -c holdfast -n '__holdfast_in dead retry' -l limit -x -d 'at most so many jobs, those that died first'
complete -c holdfast -n '__holdfast_in dead retry' -l rate -x -d 'they become due one after the other, so many in a second'
complete -c holdfast -n '__holdfast_in dead purge' -l queue -s q -x -d 'the queue'
complete -c holdfast -n '__holdfast_in dead purge' -l type -x -d 'only jobs of this type'
complete -c holdfast -n '__holdfast_in dead purge' -l since -x -d 'only jobs that died within so long'
complete -c holdfast -n '__holdfast_in dead purge' -l limit -x -d 'at most so many jobs, those that died first'
complete -c holdfast -n '__holdfast_in dead purge' -l yes -d 'do it without asking'
complete -c holdfast -n '__holdfast_in queue list' -l limit -x -d 'at most so many queues'
complete -c holdfast -n '__holdfast_in queue list' -l after -x -d 'go on after this queue: the last one of the page before'
complete -c holdfast -n '__holdfast_in queue limit' -l max-running -x -d 'jobs of it that run at the same time, across all workers'
complete -c holdfast -n '__holdfast_in queue limit' -l rate -x -d 'jobs of it that are started in a time, for example 100/1s'
complete -c holdfast -n '__holdfast_in queue purge' -l yes -d 'do it without asking'
complete -c holdfast -n '__holdfast_in lock' -l exclusive -s x -d 'nobody else at the same time'
complete -c holdfast -n '__holdfast_in lock' -l shared -s s -d 'beside others that share it'
complete -c holdfast -n '__holdfast_in lock' -l permits -x -d 'K of N permits: a semaphore'
complete -c holdfast -n '__holdfast_in lock' -l nonblock -s n -d 'do not wait for a holder'
complete -c holdfast -n '__holdfast_in lock' -l wait -s w -x -d 'wait no longer than this: 10, 2.5, 0'
complete -c holdfast -n '__holdfast_in lock' -l conflict-exit-code -s E -x -d 'what to exit with when it was not to be had'
complete -c holdfast -n '__holdfast_in lock' -l ttl -x -d 'its lease, which is renewed at a third: how long others wait when this machine dies'
complete -c holdfast -n '__holdfast_in lock' -l grace -x -d 'TERM comes so long before KILL when the lock is being lost'
complete -c holdfast -n '__holdfast_in lock' -l max-hold -x -d 'it is lost after so long'
complete -c holdfast -n '__holdfast_in lock' -l wait-replicas -x -d 'K replicas must have it, or it is not taken (exit 75)'
complete -c holdfast -n '__holdfast_in lock' -l fair -d 'in order of arrival'
complete -c holdfast -n '__holdfast_in lock' -l spin -d 'a plain SET NX PX, asked for again and again: no order'
complete -c holdfast -n '__holdfast_in lock' -l verbose -s v -d 'say what happens to the lock'
complete -c holdfast -n '__holdfast_in locks list' -l limit -x -d 'at most so many locks'
complete -c holdfast -n '__holdfast_in locks list' -l after -x -d 'go on after this name: the last one of the page before'
complete -c holdfast -n '__holdfast_in locks show' -l limit -x -d 'at most so many holders and waiters'
complete -c holdfast -n '__holdfast_in locks release' -l force -d 'take it away from who holds it'
complete -c holdfast -n '__holdfast_in locks release' -l owner -x -d 'the owner whose it is'
complete -c holdfast -n '__holdfast_in locks release' -l yes -d 'do it without asking'
complete -c holdfast -n '__holdfast_in locks revoke' -l owner -x -d 'the owner whose it is'
complete -c holdfast -n '__holdfast_in locks fence-check' -l owner -x -d 'whose fence it is, as in $HOLDFAST_LOCK_OWNER'
complete -c holdfast -n '__holdfast_in locks fence-check' -l remember -x -d 'for how long the highest fence is remembered'
complete -c holdfast -n '__holdfast_in workers' -l all -d 'also those that went silent more than an hour ago'
complete -c holdfast -n '__holdfast_in workers' -l limit -x -d 'at most so many workers'
complete -c holdfast -n '__holdfast_in workers' -l after -x -d 'go on after this worker: the last one of the page before'
complete -c holdfast -n '__holdfast_in worker' -l queue -s q -x -d 'serve this queue instead of those in the file'
complete -c holdfast -n '__holdfast_in worker' -l concurrency -s n -x -d 'jobs at the same time'
complete -c holdfast -n '__holdfast_in worker' -l burst -d 'stop when nothing is left, not even delayed'
complete -c holdfast -n '__holdfast_in doctor' -l queue -s q -x -d 'only this queue'
complete -c holdfast -n '__holdfast_in doctor' -l idle -d 'nothing works on it now: look for what was left over as well'
complete -c holdfast -n '__holdfast_in doctor' -l fix -d 'put right what is safe, then look once more'
complete -c holdfast -n '__holdfast_in script enqueue' -l sha1 -d 'print the SHA1 that EVALSHA wants, and nothing else'
complete -c holdfast -n '__holdfast_in demo' -l keep -d 'keep the directory with the handlers, their notes and the logs'
complete -c holdfast -n '__holdfast_in demo' -l svg -r -F -d 'where the picture goes'
complete -c holdfast -n '__holdfast_in bench' -l jobs -x -d 'so many jobs are enqueued and processed'
complete -c holdfast -n '__holdfast_in bench' -l payload -x -d 'bytes of each job\'s payload'
complete -c holdfast -n '__holdfast_in bench' -l concurrency -s n -x -d 'jobs at the same time'
