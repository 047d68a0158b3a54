; A thread pool for generated kernels. Linux and any system with POSIX threads; nothing here is of one machine.
;
;   i32  dt_pool_run(fn, arg, n)   runs fn(i32 thread, i32 n, ptr arg) for thread = 0..n-1 at the same time and
;                                  returns when all are done; the caller is thread 0
;   void dt_barrier(n)             all n threads of the run have come here before any of them goes on
;
; One run at a time: further callers queue on @gate. A run is published by a store to each worker's epoch, ended by
; a store to @finished. Whoever waits for a word to change first spins, then yields between spins, then sleeps on the
; event beside that word. Sleeper and waker follow Dekker's protocol, so no wake-up is lost: the sleeper counts itself
; in and then reads the word, the waker writes the word and then reads the count, all sequentially consistent.
;
; Added by pool.py: `define internal void @relax()`, the machine's hint to a spinning loop.

; sleepers, mutex and condition variable, each on its own cache line (the largest POSIX mutex known has 64 bytes)
%event = type { i32, [60 x i8], [64 x i8], [64 x i8] }
; epoch (0: no run yet), index, pthread_t; then the event; workers do not share a (double) cache line
%worker = type { i32, i32, i64, [112 x i8], %event, [64 x i8] }

@workers       = internal global [511 x %worker] zeroinitializer, align 128
@gate          = internal global [64 x i8] zeroinitializer, align 128
@done          = internal global %event zeroinitializer, align 128
@barrier       = internal global %event zeroinitializer, align 128
; written before the epochs, constant during a run
@job_fn        = internal global ptr null, align 128
@job_arg       = internal global ptr null
@job_threads   = internal global i32 0
; each of these is written by many
@unfinished    = internal global i32 0, align 128
@finished      = internal global i32 0, align 128
@arrived       = internal global i32 0, align 128
@generation    = internal global i32 0, align 128
; rarely written
@worker_count  = internal global i32 0, align 128
@caller        = internal global i64 0
@spin_budget   = internal global i32 0
@mask_set      = internal global i32 0

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_trylock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i64 @pthread_self()
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()

; ---- entry points ----------------------------------------------------------------------------------------------------

; 0: done. Anything else: nothing was run; -1: called from inside a run, -2: more threads than the pool holds,
; above 0: the system's reason for not starting a thread.
define i32 @dt_pool_run(ptr %fn, ptr %arg, i32 %n) {
entry:
  %alone = icmp slt i32 %n, 2
  br i1 %alone, label %serial, label %check
serial:
  %some = icmp eq i32 %n, 1
  br i1 %some, label %one, label %none
one:
  call void %fn(i32 0, i32 1, ptr %arg)
  ret i32 0
none:
  ret i32 0
check:
  %many = icmp sgt i32 %n, 512
  br i1 %many, label %too_many, label %enter
too_many:
  ret i32 -2
enter:
  %busy = call i32 @pthread_mutex_trylock(ptr @gate)
  %free = icmp eq i32 %busy, 0
  br i1 %free, label %inside, label %queue
queue:
  %nested = call i1 @in_a_run()
  br i1 %nested, label %refuse, label %wait_turn
refuse:
  ret i32 -1
wait_turn:
  %locked = call i32 @pthread_mutex_lock(ptr @gate)
  br label %inside
inside:
  %status = call i32 @grow(i32 %n)
  %ready = icmp eq i32 %status, 0
  br i1 %ready, label %go, label %leave
go:
  call void @run_here(ptr %fn, ptr %arg, i32 %n)
  br label %leave
leave:
  %unlocked = call i32 @pthread_mutex_unlock(ptr @gate)
  ret i32 %status
}

define void @dt_barrier(i32 %n) {
entry:
  ; read before arriving: the generation cannot end without this thread
  %now = load atomic i32, ptr @generation acquire, align 4
  %before = atomicrmw add ptr @arrived, i32 1 acq_rel
  %count = add i32 %before, 1
  %last = icmp sge i32 %count, %n
  br i1 %last, label %open, label %wait
open:
  store atomic i32 0, ptr @arrived monotonic, align 4
  %next = add i32 %now, 1
  store atomic i32 %next, ptr @generation seq_cst, align 4
  call void @wake(ptr @barrier)
  ret void
wait:
  call void @wait_for_change(ptr @generation, i32 %now, ptr @barrier)
  ret void
}

; Makes the pool new: no workers, everything unlocked. For the first use, and for the child after a fork.
define void @dt_pool_reset(i32 %mask_set, i32 %spin_budget) {
  store i32 %mask_set, ptr @mask_set
  store i32 %spin_budget, ptr @spin_budget
  store i32 0, ptr @worker_count
  store i32 0, ptr @arrived
  store i64 0, ptr @caller
  %a = call i32 @pthread_mutex_init(ptr @gate, ptr null)
  call void @init_event(ptr @done)
  call void @init_event(ptr @barrier)
  ret void
}

; `count` turns of the waiting loop, to measure how long one takes.
define void @dt_pool_spin(i32 %count) {
entry:
  br label %turn
turn:
  %i = phi i32 [ 0, %entry ], [ %next, %turn ]
  %word = load atomic i32, ptr @generation acquire, align 4
  call void @relax()
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %turn, label %end
end:
  ret void
}

define i32 @dt_pool_workers() {
  %count = load atomic i32, ptr @worker_count acquire, align 4
  ret i32 %count
}

; ---- a run -----------------------------------------------------------------------------------------------------------

; Hands the job to workers 1..n-1, does part 0, waits for the others. The gate is held and the workers exist.
define internal void @run_here(ptr %fn, ptr %arg, i32 %n) {
entry:
  %self = call i64 @pthread_self()
  store atomic i64 %self, ptr @caller monotonic, align 8
  store ptr %fn, ptr @job_fn
  store ptr %arg, ptr @job_arg
  store i32 %n, ptr @job_threads
  %others = sub i32 %n, 1
  store atomic i32 %others, ptr @unfinished monotonic, align 4
  %last_run = load atomic i32, ptr @finished monotonic, align 4
  br label %start
start:
  %i = phi i32 [ 0, %entry ], [ %next, %start ]
  %worker = getelementptr %worker, ptr @workers, i32 %i
  %epoch = load atomic i32, ptr %worker monotonic, align 4
  %new_epoch = add i32 %epoch, 1
  store atomic i32 %new_epoch, ptr %worker seq_cst, align 4
  %event = getelementptr %worker, ptr %worker, i32 0, i32 4
  call void @wake(ptr %event)
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %others
  br i1 %more, label %start, label %own
own:
  call void %fn(i32 0, i32 %n, ptr %arg)
  call void @wait_for_change(ptr @finished, i32 %last_run, ptr @done)
  store atomic i64 0, ptr @caller monotonic, align 8
  ret void
}

; The life of a worker: wait for the epoch to change, do the part, and say so if it was the last.
define internal ptr @work(ptr %worker) {
entry:
  %event = getelementptr %worker, ptr %worker, i32 0, i32 4
  %index_at = getelementptr %worker, ptr %worker, i32 0, i32 1
  %index = load i32, ptr %index_at
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %epoch, %work ], [ %epoch, %last ]
  call void @wait_for_change(ptr %worker, i32 %seen, ptr %event)
  br label %work
work:
  %epoch = load atomic i32, ptr %worker acquire, align 4
  %fn = load ptr, ptr @job_fn
  %arg = load ptr, ptr @job_arg
  %n = load i32, ptr @job_threads
  call void %fn(i32 %index, i32 %n, ptr %arg)
  %left = atomicrmw sub ptr @unfinished, i32 1 acq_rel
  %is_last = icmp eq i32 %left, 1
  br i1 %is_last, label %last, label %idle
last:
  %run = load atomic i32, ptr @finished monotonic, align 4
  %this_run = add i32 %run, 1
  store atomic i32 %this_run, ptr @finished seq_cst, align 4
  call void @wake(ptr @done)
  br label %idle
}

; Starts what is missing of n - 1 workers, with all signals blocked: signals belong to the program's own threads.
define internal i32 @grow(i32 %n) {
entry:
  %wanted = sub i32 %n, 1
  %have = load atomic i32, ptr @worker_count monotonic, align 4
  %enough = icmp sge i32 %have, %wanted
  br i1 %enough, label %none, label %mask
none:
  ret i32 0
mask:
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %how = load i32, ptr @mask_set
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 %how, ptr %all, ptr %old)
  br label %start
start:
  %i = phi i32 [ %have, %mask ], [ %next, %started ]
  %next = add i32 %i, 1
  %worker = getelementptr %worker, ptr @workers, i32 %i
  store atomic i32 0, ptr %worker monotonic, align 4
  %index_at = getelementptr %worker, ptr %worker, i32 0, i32 1
  store i32 %next, ptr %index_at
  %event = getelementptr %worker, ptr %worker, i32 0, i32 4
  call void @init_event(ptr %event)
  %thread_at = getelementptr %worker, ptr %worker, i32 0, i32 2
  %error = call i32 @pthread_create(ptr %thread_at, ptr null, ptr @work, ptr %worker)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %started, label %unmask
started:
  %thread = load i64, ptr %thread_at
  %d = call i32 @pthread_detach(i64 %thread)
  store atomic i32 %next, ptr @worker_count release, align 4
  %more = icmp slt i32 %next, %wanted
  br i1 %more, label %start, label %unmask
unmask:
  %status = phi i32 [ %error, %start ], [ 0, %started ]
  %u = call i32 @pthread_sigmask(i32 %how, ptr %old, ptr null)
  ret i32 %status
}

; Is this thread the caller or a worker of the run that holds the gate?
define internal i1 @in_a_run() {
entry:
  %self = call i64 @pthread_self()
  %caller = load atomic i64, ptr @caller monotonic, align 8
  %is_caller = icmp eq i64 %self, %caller
  br i1 %is_caller, label %yes, label %count
count:
  %workers = load atomic i32, ptr @worker_count acquire, align 4
  br label %next
next:
  %i = phi i32 [ 0, %count ], [ %i1, %look ]
  %more = icmp slt i32 %i, %workers
  br i1 %more, label %look, label %no
look:
  %thread_at = getelementptr %worker, ptr @workers, i32 %i, i32 2
  %thread = load i64, ptr %thread_at
  %i1 = add i32 %i, 1
  %same = icmp eq i64 %thread, %self
  br i1 %same, label %yes, label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; ---- waiting and waking ----------------------------------------------------------------------------------------------

; Returns once the word differs from `old`; what was written before the word is then visible.
define internal void @wait_for_change(ptr %word, i32 %old, ptr %event) {
entry:
  %budget = load i32, ptr @spin_budget
  %patience = udiv i32 %budget, 8
  br label %look
look:
  %i = phi i32 [ 0, %entry ], [ %next, %spin ], [ %next, %yield ]
  %value = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %value, %old
  br i1 %same, label %again, label %changed
again:
  %next = add i32 %i, 1
  %more = icmp ult i32 %i, %budget
  br i1 %more, label %spin, label %sleep
spin:
  call void @relax()
  ; after an eighth of the time, let others run now and then: the thread waited for may need this core
  %late = icmp ugt i32 %i, %patience
  %beat = and i32 %i, 63
  %on_beat = icmp eq i32 %beat, 0
  %polite = and i1 %late, %on_beat
  br i1 %polite, label %yield, label %look
yield:
  %y = call i32 @sched_yield()
  br label %look
sleep:
  call void @sleep_until_change(ptr %word, i32 %old, ptr %event)
  ret void
changed:
  ret void
}

define internal void @sleep_until_change(ptr %word, i32 %old, ptr %event) {
entry:
  %mutex = getelementptr %event, ptr %event, i32 0, i32 2
  %condition = getelementptr %event, ptr %event, i32 0, i32 3
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = atomicrmw add ptr %event, i32 1 seq_cst
  br label %look
look:
  %value = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %value, %old
  br i1 %same, label %sleep, label %changed
sleep:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %look
changed:
  %a = atomicrmw sub ptr %event, i32 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; The word has been written, sequentially consistent; now whoever sleeps on it must look again.
define internal void @wake(ptr %event) {
entry:
  %sleepers = load atomic i32, ptr %event seq_cst, align 4
  %nobody = icmp eq i32 %sleepers, 0
  br i1 %nobody, label %end, label %call
call:
  %mutex = getelementptr %event, ptr %event, i32 0, i32 2
  %condition = getelementptr %event, ptr %event, i32 0, i32 3
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %end
end:
  ret void
}

define internal void @init_event(ptr %event) {
  store atomic i32 0, ptr %event monotonic, align 4
  %mutex = getelementptr %event, ptr %event, i32 0, i32 2
  %condition = getelementptr %event, ptr %event, i32 0, i32 3
  %m = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr %condition, ptr null)
  ret void
}
