; A pool of threads that run ranges of one kernel at a time.
;
; Each worker has a slot: its state is 0 (idle), 1 (a job is posted) or 2 (running). The caller posts, works through
; the tasks itself, takes back what no worker has begun, and waits for the others. Tasks are claimed one by one
; from a counter, so a late worker never holds anybody up. Whoever waits spins for a short while, then sleeps.
; Sleeping and waking follow one rule: say "asleep" under the lock, look once more, then wait; the other side
; writes first and looks at "asleep" second. Both are sequentially consistent, so no wake-up is lost.
;
; An ordered job has a second kernel, for results whose place depends on how much came before. Whoever has run the
; first kernel on task t waits until it is the turn of t, says where t + 1 begins (ends[t + 1] = ends[t] + counts[t], for
; each of several chains), passes the turn on, and runs the second kernel. Tasks are claimed in order by threads that are
; running, so the turn always comes. Each thread has words of its own, `stride` bytes apart: memory of its own.
;
; Of a job whose tasks have results of their own, each task has its words, `step` bytes apart, and both its bounds.
;
; Filled in by pool.py: {PAUSE} {BLOCK} {SETMASK}

%job = type { ptr, ptr, ptr, i64, i64, ptr, ptr, i64, ptr, ptr, i64, i64 }
; the kernel, its words, bounds, tasks; of an ordered job also: the words' stride, the second kernel, its words and
; their stride, counts and ends of each chain one after the other, chains; of one with words for each task: the step
%slot = type { i64, [56 x i8], i64, [56 x i8], [64 x i8], [64 x i8] }

@job = internal global %job zeroinitializer, align 64
@busy = internal global i64 0, align 64
@next = internal global i64 0, align 64
@turn = internal global i64 0, align 64
@status = internal global i64 0, align 64
@asleep = internal global i64 0, align 64
@started = internal global i64 0, align 8
@owner = internal global i64 0, align 8
@patience = internal global i64 0, align 8
@lock = internal global [64 x i8] zeroinitializer, align 64
@done = internal global [64 x i8] zeroinitializer, align 64
@slots = internal global [256 x %slot] zeroinitializer, align 64

declare i32 @getpid() nounwind
declare i32 @sched_yield() nounwind
declare i32 @pthread_create(ptr, ptr, ptr, ptr) nounwind
declare i32 @pthread_mutex_init(ptr, ptr) nounwind
declare i32 @pthread_mutex_lock(ptr) nounwind
declare i32 @pthread_mutex_unlock(ptr) nounwind
declare i32 @pthread_cond_init(ptr, ptr) nounwind
declare i32 @pthread_cond_wait(ptr, ptr) nounwind
declare i32 @pthread_cond_signal(ptr) nounwind
declare i32 @pthread_detach(ptr) nounwind
declare i32 @pthread_sigmask(i32, ptr, ptr) nounwind
declare i32 @sigfillset(ptr) nounwind
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.x86.sse2.pause()
declare void @llvm.aarch64.hint(i32)

; Run tasks until none is left, as thread number %who.
define internal void @work(i64 %who) nounwind noinline {
entry:
  %fn = load ptr, ptr @job
  %words.at = getelementptr inbounds %job, ptr @job, i64 0, i32 1
  %words.all = load ptr, ptr %words.at
  %bounds.at = getelementptr inbounds %job, ptr @job, i64 0, i32 2
  %bounds = load ptr, ptr %bounds.at
  %tasks.at = getelementptr inbounds %job, ptr @job, i64 0, i32 3
  %tasks = load i64, ptr %tasks.at
  %stride.at = getelementptr inbounds %job, ptr @job, i64 0, i32 4
  %stride = load i64, ptr %stride.at
  %offset = mul i64 %stride, %who
  %words.mine = getelementptr inbounds i8, ptr %words.all, i64 %offset
  %second.at = getelementptr inbounds %job, ptr @job, i64 0, i32 5
  %second = load ptr, ptr %second.at
  %ordered = icmp ne ptr %second, null
  %step.at = getelementptr inbounds %job, ptr @job, i64 0, i32 11
  %step = load i64, ptr %step.at
  %apart = icmp ne i64 %step, 0
  %shift = zext i1 %apart to i64
  br label %claim
claim:
  %t = atomicrmw add ptr @next, i64 1 acq_rel
  %more = icmp slt i64 %t, %tasks
  br i1 %more, label %task, label %exit
task:
  %ahead = mul i64 %step, %t
  %words = getelementptr inbounds i8, ptr %words.mine, i64 %ahead
  %at = shl i64 %t, %shift
  %lo.at = getelementptr inbounds i64, ptr %bounds, i64 %at
  %lo = load i64, ptr %lo.at
  %hi.at = getelementptr inbounds i64, ptr %lo.at, i64 1
  %hi = load i64, ptr %hi.at
  %code = call i64 %fn(ptr %words, i64 %lo, i64 %hi)
  br i1 %ordered, label %place, label %result
place:
  %code2 = call i64 @place(i64 %who, i64 %t, i64 %lo, i64 %hi)
  br label %result
result:
  %later = phi i64 [ 0, %task ], [ %code2, %place ]
  %worst = call i64 @llvm.umax.i64(i64 %code, i64 %later)
  %bad = icmp ne i64 %worst, 0
  br i1 %bad, label %note, label %claim
note:
  %old = atomicrmw umax ptr @status, i64 %worst acq_rel
  br label %claim
exit:
  ret void
}

; What an ordered job does after the first kernel has run on task %t.
define internal i64 @place(i64 %who, i64 %t, i64 %lo, i64 %hi) nounwind noinline {
entry:
  %tasks.at = getelementptr inbounds %job, ptr @job, i64 0, i32 3
  %tasks = load i64, ptr %tasks.at
  %second.at = getelementptr inbounds %job, ptr @job, i64 0, i32 5
  %second = load ptr, ptr %second.at
  %words.at = getelementptr inbounds %job, ptr @job, i64 0, i32 6
  %words.all = load ptr, ptr %words.at
  %stride.at = getelementptr inbounds %job, ptr @job, i64 0, i32 7
  %stride = load i64, ptr %stride.at
  %offset = mul i64 %stride, %who
  %words = getelementptr inbounds i8, ptr %words.all, i64 %offset
  %counts.at = getelementptr inbounds %job, ptr @job, i64 0, i32 8
  %counts = load ptr, ptr %counts.at
  %ends.at = getelementptr inbounds %job, ptr @job, i64 0, i32 9
  %ends = load ptr, ptr %ends.at
  %chains.at = getelementptr inbounds %job, ptr @job, i64 0, i32 10
  %chains = load i64, ptr %chains.at
  %spins = load i64, ptr @patience
  %patience = lshr i64 %spins, 3
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %k1, %wait ], [ %k1, %yield ]
  %k1 = add nuw nsw i64 %k, 1
  %now = load atomic i64, ptr @turn acquire, align 8
  %mine = icmp eq i64 %now, %t
  br i1 %mine, label %head, label %spin
spin:
  %patient = icmp ult i64 %k, %patience
  br i1 %patient, label %wait, label %yield
wait:
  {PAUSE}
  br label %look
yield:
  %y = call i32 @sched_yield()
  br label %look
head:
  %r = phi i64 [ 0, %look ], [ %r1, %body ]
  %left = icmp slt i64 %r, %chains
  br i1 %left, label %body, label %pass
body:
  %r1 = add nuw nsw i64 %r, 1
  %row = mul i64 %r, %tasks
  %count.i = add i64 %row, %t
  %count.at = getelementptr inbounds i64, ptr %counts, i64 %count.i
  %count = load i64, ptr %count.at
  %end.i = add i64 %count.i, %r
  %end.at = getelementptr inbounds i64, ptr %ends, i64 %end.i
  %end = load i64, ptr %end.at
  %following = add i64 %end, %count
  %next.at = getelementptr inbounds i64, ptr %end.at, i64 1
  store i64 %following, ptr %next.at
  br label %head
pass:
  %t1 = add nuw nsw i64 %t, 1
  store atomic i64 %t1, ptr @turn release, align 8
  %code = call i64 %second(ptr %words, i64 %lo, i64 %hi)
  ret i64 %code
}

; Spin while the state at %state is %value, for as long as patience lasts; whether it changed.
define internal i1 @watch(ptr %state, i64 %value) nounwind alwaysinline {
entry:
  %limit = load i64, ptr @patience
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %k1, %again ]
  %now = load atomic i64, ptr %state acquire, align 8
  %same = icmp eq i64 %now, %value
  br i1 %same, label %wait, label %changed
wait:
  %left = icmp ult i64 %k, %limit
  br i1 %left, label %again, label %tired
again:
  {PAUSE}
  %k1 = add nuw nsw i64 %k, 1
  br label %look
changed:
  ret i1 true
tired:
  ret i1 false
}

; The life of a worker; its argument is its slot.
define internal ptr @worker(ptr %state) nounwind {
entry:
  %asleep = getelementptr inbounds %slot, ptr %state, i64 0, i32 2
  %mutex = getelementptr inbounds %slot, ptr %state, i64 0, i32 4
  %cond = getelementptr inbounds %slot, ptr %state, i64 0, i32 5
  br label %idle
idle:
  %seen = call i1 @watch(ptr %state, i64 0)
  br i1 %seen, label %take, label %sleep
sleep:
  %l0 = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i64 1, ptr %asleep seq_cst, align 8
  br label %check
check:
  %now = load atomic i64, ptr %state seq_cst, align 8
  %posted = icmp eq i64 %now, 1
  br i1 %posted, label %wake, label %nap
nap:
  %w0 = call i32 @pthread_cond_wait(ptr %cond, ptr %mutex)
  br label %check
wake:
  store atomic i64 0, ptr %asleep seq_cst, align 8
  %u0 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %take
take:
  %pair = cmpxchg ptr %state, i64 1, i64 2 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %run, label %idle
run:
  %place.at = ptrtoint ptr %state to i64
  %first.at = ptrtoint ptr @slots to i64
  %distance = sub i64 %place.at, %first.at
  %number = lshr i64 %distance, 8
  %who = add i64 %number, 1
  call void @work(i64 %who)
  store atomic i64 0, ptr %state seq_cst, align 8
  %waiting = load atomic i64, ptr @asleep seq_cst, align 8
  %call = icmp ne i64 %waiting, 0
  br i1 %call, label %tell, label %idle
tell:
  %l1 = call i32 @pthread_mutex_lock(ptr @lock)
  %s1 = call i32 @pthread_cond_signal(ptr @done)
  %u1 = call i32 @pthread_mutex_unlock(ptr @lock)
  br label %idle
}

; Post the job to a worker, waking it if it sleeps.
define internal void @post(ptr %state) nounwind {
entry:
  %asleep = getelementptr inbounds %slot, ptr %state, i64 0, i32 2
  store atomic i64 1, ptr %state seq_cst, align 8
  %flag = load atomic i64, ptr %asleep seq_cst, align 8
  %sleeps = icmp ne i64 %flag, 0
  br i1 %sleeps, label %wake, label %exit
wake:
  %mutex = getelementptr inbounds %slot, ptr %state, i64 0, i32 4
  %cond = getelementptr inbounds %slot, ptr %state, i64 0, i32 5
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = call i32 @pthread_cond_signal(ptr %cond)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %exit
exit:
  ret void
}

; Take the job back from a worker that has not begun; wait for one that has.
define internal void @finish(ptr %state) nounwind {
entry:
  %pair = cmpxchg ptr %state, i64 1, i64 0 seq_cst seq_cst
  %unused = extractvalue { i64, i1 } %pair, 1
  br i1 %unused, label %exit, label %spin
spin:
  %seen = call i1 @watch(ptr %state, i64 2)
  br i1 %seen, label %exit, label %sleep
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @lock)
  store atomic i64 1, ptr @asleep seq_cst, align 8
  br label %check
check:
  %now = load atomic i64, ptr %state seq_cst, align 8
  %running = icmp eq i64 %now, 2
  br i1 %running, label %nap, label %wake
nap:
  %w = call i32 @pthread_cond_wait(ptr @done, ptr @lock)
  br label %check
wake:
  store atomic i64 0, ptr @asleep seq_cst, align 8
  %u = call i32 @pthread_mutex_unlock(ptr @lock)
  br label %exit
exit:
  ret void
}

; Start workers until there are %wanted (at most 256); how many there are. One caller at a time.
define i64 @ow_pool_start(i64 %wanted, i64 %spins) nounwind {
entry:
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %thread = alloca ptr, align 8
  %pid32 = call i32 @getpid()
  %pid = sext i32 %pid32 to i64
  %owner = load i64, ptr @owner
  %same = icmp eq i64 %pid, %owner
  br i1 %same, label %begin, label %fresh
fresh:
  call void @llvm.memset.p0.i64(ptr @slots, i8 0, i64 65536, i1 false)
  call void @llvm.memset.p0.i64(ptr @lock, i8 0, i64 64, i1 false)
  call void @llvm.memset.p0.i64(ptr @done, i8 0, i64 64, i1 false)
  %m0 = call i32 @pthread_mutex_init(ptr @lock, ptr null)
  %c0 = call i32 @pthread_cond_init(ptr @done, ptr null)
  store i64 0, ptr @asleep
  store i64 0, ptr @started
  store i64 %pid, ptr @owner
  store atomic i64 0, ptr @busy seq_cst, align 8
  br label %begin
begin:
  store i64 %spins, ptr @patience
  %f = call i32 @sigfillset(ptr %all)
  %b = call i32 @pthread_sigmask(i32 {BLOCK}, ptr %all, ptr %old)
  %few = icmp ult i64 %wanted, 256
  %limit = select i1 %few, i64 %wanted, i64 256
  br label %head
head:
  %n = load i64, ptr @started
  %more = icmp ult i64 %n, %limit
  br i1 %more, label %create, label %exit
create:
  %slot = getelementptr inbounds [256 x %slot], ptr @slots, i64 0, i64 %n
  %mutex = getelementptr inbounds %slot, ptr %slot, i64 0, i32 4
  %cond = getelementptr inbounds %slot, ptr %slot, i64 0, i32 5
  %m1 = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %c1 = call i32 @pthread_cond_init(ptr %cond, ptr null)
  %code = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %slot)
  %made = icmp eq i32 %code, 0
  br i1 %made, label %count, label %exit
count:
  %id = load ptr, ptr %thread
  %d = call i32 @pthread_detach(ptr %id)
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @started
  br label %head
exit:
  %r = call i32 @pthread_sigmask(i32 {SETMASK}, ptr %old, ptr null)
  %total = load i64, ptr @started
  ret i64 %total
}

; Run %fn(words, bounds[t], bounds[t + 1]) for t in [0, %tasks) on the caller and at most %helpers workers.
; The greatest status; -1 where the pool belongs to another process (a fork), -2 where it is busy.
define i64 @ow_pool_run(ptr %fn, ptr %words, ptr %bounds, i64 %tasks, i64 %helpers) nounwind {
  %code = call i64 @ow_pool_ordered(ptr %fn, ptr %words, ptr %bounds, i64 %tasks, i64 %helpers, i64 0, ptr null, ptr null,
    i64 0, ptr null, ptr null, i64 0, i64 0)
  ret i64 %code
}

; Run %fn(words + t * step, bounds[2 t], bounds[2 t + 1]) likewise.
define i64 @ow_pool_apart(ptr %fn, ptr %words, ptr %bounds, i64 %tasks, i64 %helpers, i64 %step) nounwind {
  %code = call i64 @ow_pool_ordered(ptr %fn, ptr %words, ptr %bounds, i64 %tasks, i64 %helpers, i64 0, ptr null, ptr null,
    i64 0, ptr null, ptr null, i64 0, i64 %step)
  ret i64 %code
}

; The same for an ordered job, whose second kernel is %second.
define i64 @ow_pool_ordered(ptr %fn, ptr %words, ptr %bounds, i64 %tasks, i64 %helpers, i64 %stride, ptr %second,
    ptr %words2, i64 %stride2, ptr %counts, ptr %ends, i64 %chains, i64 %step) nounwind {
entry:
  %pid32 = call i32 @getpid()
  %pid = sext i32 %pid32 to i64
  %owner = load i64, ptr @owner
  %same = icmp eq i64 %pid, %owner
  br i1 %same, label %enter, label %foreign
foreign:
  ret i64 -1
enter:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue { i64, i1 } %pair, 1
  br i1 %free, label %begin, label %taken
taken:
  ret i64 -2
begin:
  store ptr %fn, ptr @job
  %words.at = getelementptr inbounds %job, ptr @job, i64 0, i32 1
  store ptr %words, ptr %words.at
  %bounds.at = getelementptr inbounds %job, ptr @job, i64 0, i32 2
  store ptr %bounds, ptr %bounds.at
  %tasks.at = getelementptr inbounds %job, ptr @job, i64 0, i32 3
  store i64 %tasks, ptr %tasks.at
  %stride.at = getelementptr inbounds %job, ptr @job, i64 0, i32 4
  store i64 %stride, ptr %stride.at
  %second.at = getelementptr inbounds %job, ptr @job, i64 0, i32 5
  store ptr %second, ptr %second.at
  %words2.at = getelementptr inbounds %job, ptr @job, i64 0, i32 6
  store ptr %words2, ptr %words2.at
  %stride2.at = getelementptr inbounds %job, ptr @job, i64 0, i32 7
  store i64 %stride2, ptr %stride2.at
  %counts.at = getelementptr inbounds %job, ptr @job, i64 0, i32 8
  store ptr %counts, ptr %counts.at
  %ends.at = getelementptr inbounds %job, ptr @job, i64 0, i32 9
  store ptr %ends, ptr %ends.at
  %chains.at = getelementptr inbounds %job, ptr @job, i64 0, i32 10
  store i64 %chains, ptr %chains.at
  %step.at = getelementptr inbounds %job, ptr @job, i64 0, i32 11
  store i64 %step, ptr %step.at
  store i64 0, ptr @turn
  store i64 0, ptr @next
  store i64 0, ptr @status
  %started = load i64, ptr @started
  %others = sub i64 %tasks, 1
  %a = call i64 @llvm.smin.i64(i64 %helpers, i64 %started)
  %n = call i64 @llvm.smin.i64(i64 %a, i64 %others)
  br label %post.head
post.head:
  %i = phi i64 [ 0, %begin ], [ %i1, %post.body ]
  %posting = icmp slt i64 %i, %n
  br i1 %posting, label %post.body, label %own
post.body:
  %slot0 = getelementptr inbounds [256 x %slot], ptr @slots, i64 0, i64 %i
  call void @post(ptr %slot0)
  %i1 = add nsw i64 %i, 1
  br label %post.head
own:
  call void @work(i64 0)
  br label %wait.head
wait.head:
  %j = phi i64 [ 0, %own ], [ %j1, %wait.body ]
  %waiting = icmp slt i64 %j, %n
  br i1 %waiting, label %wait.body, label %exit
wait.body:
  %slot1 = getelementptr inbounds [256 x %slot], ptr @slots, i64 0, i64 %j
  call void @finish(ptr %slot1)
  %j1 = add nsw i64 %j, 1
  br label %wait.head
exit:
  %result = load atomic i64, ptr @status seq_cst, align 8
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret i64 %result
}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
