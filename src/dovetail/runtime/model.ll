; A whole model in one run of the pool: its steps one after the other, each a kernel with its words. Compiled together
; with pool.ll and call.ll.
;
;   i32 dt_model_call(model)   0: done; 1: the arguments are not plain, nothing was run; 2: the threads could not be
;                              had, the reason is in the request; 3: an index that was read left its tensor, the reason
;                              is the number of the check that says so
;   i32 dt_model_run(model)    the same for arguments whose addresses are among the words already
;
; Every unit walks through all steps. A step that is not spread over units is run by unit 0 alone; units meet before a
; step only where one of it and its predecessor is spread.

; the arguments (%request of call.ll), table of steps, patches, how many, checks, how many
%model = type { %request, ptr, ptr, i64, ptr, i64 }
; number of steps, steps
%table = type { i64, ptr }
; kernel, its words, 1: spread over units | 2: units meet before it
%step = type { ptr, ptr, i64 }
; a word of some step, and which of the arguments' addresses belongs there
%patch = type { ptr, i64 }

define i32 @dt_model_call(ptr %model) {
entry:
  %plain = call i1 @placed(ptr %model)
  br i1 %plain, label %run, label %other
run:
  %status = call i32 @dt_model_run(ptr %model)
  ret i32 %status
other:
  ret i32 1
}

define i32 @dt_model_run(ptr %model) {
entry:
  %words.at = getelementptr %request, ptr %model, i32 0, i32 4
  %words = load ptr, ptr %words.at
  %threads.at = getelementptr %request, ptr %model, i32 0, i32 6
  %threads = load i32, ptr %threads.at
  %reason.at = getelementptr %request, ptr %model, i32 0, i32 7
  %table.at = getelementptr %model, ptr %model, i32 0, i32 1
  %table = load ptr, ptr %table.at
  %patches.at = getelementptr %model, ptr %model, i32 0, i32 2
  %patches = load ptr, ptr %patches.at
  %patch.count.at = getelementptr %model, ptr %model, i32 0, i32 3
  %patch.count = load i64, ptr %patch.count.at
  %checks.at = getelementptr %model, ptr %model, i32 0, i32 4
  %checks = load ptr, ptr %checks.at
  %check.count.at = getelementptr %model, ptr %model, i32 0, i32 5
  %check.count = load i64, ptr %check.count.at
  br label %each.patch
each.patch:
  %p = phi i64 [ 0, %entry ], [ %p.next, %put ]
  %p.more = icmp ult i64 %p, %patch.count
  br i1 %p.more, label %put, label %run
put:
  %patch = getelementptr %patch, ptr %patches, i64 %p
  %word = load ptr, ptr %patch
  %number.at = getelementptr %patch, ptr %patch, i32 0, i32 1
  %number = load i64, ptr %number.at
  %address.at = getelementptr ptr, ptr %words, i64 %number
  %address = load ptr, ptr %address.at
  store ptr %address, ptr %word
  %p.next = add i64 %p, 1
  br label %each.patch
run:
  %refused = call i32 @dt_pool_run(ptr @dt_model, ptr %table, i32 %threads)
  %done = icmp eq i32 %refused, 0
  br i1 %done, label %each.check, label %refusal
each.check:
  %c = phi i64 [ 0, %run ], [ %c.next, %look ]
  %c.more = icmp ult i64 %c, %check.count
  br i1 %c.more, label %look, label %good
look:
  %status.at = getelementptr ptr, ptr %checks, i64 %c
  %status = load ptr, ptr %status.at
  %failure = load i64, ptr %status
  %sound = icmp eq i64 %failure, 0
  %c.next = add i64 %c, 1
  br i1 %sound, label %each.check, label %failed
failed:
  %which = trunc i64 %c to i32
  store i32 %which, ptr %reason.at
  ret i32 3
refusal:
  store i32 %refused, ptr %reason.at
  ret i32 2
good:
  ret i32 0
}

; What each unit does.
define void @dt_model(i32 %unit, i32 %units, ptr %table) {
entry:
  %count = load i64, ptr %table
  %steps.at = getelementptr %table, ptr %table, i32 0, i32 1
  %steps = load ptr, ptr %steps.at
  %several = icmp ugt i32 %units, 1
  %first = icmp eq i32 %unit, 0
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %end
look:
  %step = getelementptr %step, ptr %steps, i64 %i
  %kernel = load ptr, ptr %step
  %words.at = getelementptr %step, ptr %step, i32 0, i32 1
  %words = load ptr, ptr %words.at
  %kind.at = getelementptr %step, ptr %step, i32 0, i32 2
  %kind = load i64, ptr %kind.at
  %meeting = and i64 %kind, 2
  %meet = icmp ne i64 %meeting, 0
  %wait = and i1 %several, %meet
  br i1 %wait, label %barrier, label %run
barrier:
  call void @dt_barrier(i32 %units)
  br label %run
run:
  %spreading = and i64 %kind, 1
  %spread = icmp ne i64 %spreading, 0
  br i1 %spread, label %together, label %alone
together:
  call void %kernel(i32 %unit, i32 %units, ptr %words)
  br label %after
alone:
  br i1 %first, label %mine, label %after
mine:
  call void %kernel(i32 0, i32 1, ptr %words)
  br label %after
after:
  %next = add i64 %i, 1
  br label %each
end:
  ret void
}
