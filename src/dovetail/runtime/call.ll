; The plain call: NumPy arrays of exactly the expected types and shapes, handed to a kernel without passing through
; Python. Compiled together with pool.ll.
;
;   i32 dt_call(request)   0: done; 1: not the plain case, nothing was run; 2: the threads could not be had, the reason
;                          is in the request; 3: an index that was read left its tensor, the status words say which
;
; `objects` of the request holds the addresses of the Python objects. What an object is made of is read the way NumPy's
; own macros read it: the type behind the reference count, then data, rank, extents, strides, base, dtype and flags.

; wanted of one argument: type object, dtype object, rank, flags that must be set, extents, bytes, slot among the words
%parameter = type { ptr, ptr, i32, i32, ptr, i64, i64 }
; number of arguments, how many of them (the last ones) are written, parameters, objects, words of the call, kernel,
; threads, reason of a refusal, status words, bytes of status to clear
%request = type { i64, i64, ptr, ptr, ptr, ptr, i32, i32, ptr, i64 }
; reference count, type, data, rank, extents, strides, base, dtype, flags
%array = type { i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32 }

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @dt_call(ptr %request) {
entry:
  %plain = call i1 @placed(ptr %request)
  br i1 %plain, label %run, label %other
run:
  %words.at = getelementptr %request, ptr %request, i32 0, i32 4
  %words = load ptr, ptr %words.at
  %kernel.at = getelementptr %request, ptr %request, i32 0, i32 5
  %kernel = load ptr, ptr %kernel.at
  %threads.at = getelementptr %request, ptr %request, i32 0, i32 6
  %threads = load i32, ptr %threads.at
  %status.at = getelementptr %request, ptr %request, i32 0, i32 8
  %status = load ptr, ptr %status.at
  %bytes.at = getelementptr %request, ptr %request, i32 0, i32 9
  %bytes = load i64, ptr %bytes.at
  call void @llvm.memset.p0.i64(ptr %status, i8 0, i64 %bytes, i1 false)
  %refused = call i32 @dt_pool_run(ptr %kernel, ptr %words, i32 %threads)
  %done = icmp eq i32 %refused, 0
  br i1 %done, label %end, label %refusal
end:
  %failure = load i64, ptr %status
  %failed = icmp ne i64 %failure, 0
  %result = select i1 %failed, i32 3, i32 0
  ret i32 %result
refusal:
  %reason.at = getelementptr %request, ptr %request, i32 0, i32 7
  store i32 %refused, ptr %reason.at
  ret i32 2
other:
  ret i32 1
}

; Whether every object is what is wanted, and no written array shares memory with another; their addresses are then
; among the words.
define internal i1 @placed(ptr %request) {
entry:
  %count = load i64, ptr %request
  %written.at = getelementptr %request, ptr %request, i32 0, i32 1
  %written = load i64, ptr %written.at
  %read = sub i64 %count, %written
  %parameters.at = getelementptr %request, ptr %request, i32 0, i32 2
  %parameters = load ptr, ptr %parameters.at
  %objects.at = getelementptr %request, ptr %request, i32 0, i32 3
  %objects = load ptr, ptr %objects.at
  %words.at = getelementptr %request, ptr %request, i32 0, i32 4
  %words = load ptr, ptr %words.at
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %apart ]
  %some = icmp ult i64 %i, %count
  br i1 %some, label %look, label %run
look:
  %parameter = getelementptr %parameter, ptr %parameters, i64 %i
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %fits = call i1 @fits(ptr %object, ptr %parameter)
  br i1 %fits, label %place, label %other
place:
  %data = call ptr @data_of(ptr %object)
  %slot.at = getelementptr %parameter, ptr %parameter, i32 0, i32 6
  %slot = load i64, ptr %slot.at
  %word = getelementptr i64, ptr %words, i64 %slot
  store ptr %data, ptr %word
  %next = add i64 %i, 1
  %is.read = icmp ult i64 %i, %read
  br i1 %is.read, label %apart, label %against
against:
  ; a written array shares memory with none that came before it
  %j = phi i64 [ 0, %place ], [ %j.next, %between ]
  %more = icmp ult i64 %j, %i
  br i1 %more, label %between, label %apart
between:
  %earlier = getelementptr %parameter, ptr %parameters, i64 %j
  %earlier.slot.at = getelementptr %parameter, ptr %earlier, i32 0, i32 6
  %earlier.slot = load i64, ptr %earlier.slot.at
  %earlier.word = getelementptr i64, ptr %words, i64 %earlier.slot
  %theirs = load i64, ptr %earlier.word
  %theirs.bytes.at = getelementptr %parameter, ptr %earlier, i32 0, i32 5
  %theirs.bytes = load i64, ptr %theirs.bytes.at
  %theirs.end = add i64 %theirs, %theirs.bytes
  %mine = ptrtoint ptr %data to i64
  %mine.bytes.at = getelementptr %parameter, ptr %parameter, i32 0, i32 5
  %mine.bytes = load i64, ptr %mine.bytes.at
  %mine.end = add i64 %mine, %mine.bytes
  %starts.before = icmp ult i64 %theirs, %mine.end
  %ends.after = icmp ult i64 %mine, %theirs.end
  %shared = and i1 %starts.before, %ends.after
  %j.next = add i64 %j, 1
  br i1 %shared, label %other, label %against
apart:
  br label %each
run:
  ret i1 true
other:
  ret i1 false
}

define internal ptr @data_of(ptr %object) {
  %at = getelementptr %array, ptr %object, i32 0, i32 2
  %data = load ptr, ptr %at
  ret ptr %data
}

define internal i1 @fits(ptr %object, ptr %parameter) {
entry:
  %type.at = getelementptr %array, ptr %object, i32 0, i32 1
  %type = load ptr, ptr %type.at
  %type.wanted = load ptr, ptr %parameter
  %is.array = icmp eq ptr %type, %type.wanted
  br i1 %is.array, label %inside, label %no
inside:
  %dtype.at = getelementptr %array, ptr %object, i32 0, i32 7
  %dtype = load ptr, ptr %dtype.at
  %dtype.wanted.at = getelementptr %parameter, ptr %parameter, i32 0, i32 1
  %dtype.wanted = load ptr, ptr %dtype.wanted.at
  %same.dtype = icmp eq ptr %dtype, %dtype.wanted
  %rank.at = getelementptr %array, ptr %object, i32 0, i32 3
  %rank = load i32, ptr %rank.at
  %rank.wanted.at = getelementptr %parameter, ptr %parameter, i32 0, i32 2
  %rank.wanted = load i32, ptr %rank.wanted.at
  %same.rank = icmp eq i32 %rank, %rank.wanted
  %flags.at = getelementptr %array, ptr %object, i32 0, i32 8
  %flags = load i32, ptr %flags.at
  %flags.wanted.at = getelementptr %parameter, ptr %parameter, i32 0, i32 3
  %flags.wanted = load i32, ptr %flags.wanted.at
  %flags.set = and i32 %flags, %flags.wanted
  %same.flags = icmp eq i32 %flags.set, %flags.wanted
  %two = and i1 %same.dtype, %same.rank
  %three = and i1 %two, %same.flags
  br i1 %three, label %extents, label %no
extents:
  %dims.at = getelementptr %array, ptr %object, i32 0, i32 4
  %dims = load ptr, ptr %dims.at
  %dims.wanted.at = getelementptr %parameter, ptr %parameter, i32 0, i32 4
  %dims.wanted = load ptr, ptr %dims.wanted.at
  br label %each
each:
  %d = phi i32 [ 0, %extents ], [ %next, %compare ]
  %more = icmp ult i32 %d, %rank
  br i1 %more, label %compare, label %yes
compare:
  %dim.at = getelementptr i64, ptr %dims, i32 %d
  %dim = load i64, ptr %dim.at
  %dim.wanted.at = getelementptr i64, ptr %dims.wanted, i32 %d
  %dim.wanted = load i64, ptr %dim.wanted.at
  %next = add i32 %d, 1
  %same = icmp eq i64 %dim, %dim.wanted
  br i1 %same, label %each, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
