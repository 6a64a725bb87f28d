; A kernel, its words and the objects whose memory it reads or writes -> the kernel's status.
;
; The memory of an object is asked of its buffer protocol, and held while the kernel runs, so that nobody resizes it. All
; of CPython is called through its public functions, whose addresses `ow_launcher_begin` is given; %view is CPython's
; Py_buffer, which is part of its stable ABI.
;
; A launch is a record of 64-bit words: the kernel's address, the number of its words, the number of objects, whether the
; interpreter's lock is released while the kernel runs, how many objects from the first on are refused where their memory
; has gaps or is one element many times, the word that each object's address goes to (-1: to none), and the kernel's words.

%view = type { ptr, ptr, i64, i64, i32, i32, ptr, ptr, ptr, ptr, ptr }

@has_buffer = internal global ptr null, align 8
@get_buffer = internal global ptr null, align 8
@release = internal global ptr null, align 8
@item = internal global ptr null, align 8
@to_integer = internal global ptr null, align 8
@failed = internal global ptr null, align 8
@unlock = internal global ptr null, align 8
@lock = internal global ptr null, align 8

define void @ow_launcher_begin(ptr %has_buffer, ptr %get_buffer, ptr %release, ptr %item, ptr %to_integer, ptr %failed, ptr %unlock, ptr %lock) nounwind {
  store ptr %has_buffer, ptr @has_buffer
  store ptr %get_buffer, ptr @get_buffer
  store ptr %release, ptr @release
  store ptr %item, ptr @item
  store ptr %to_integer, ptr @to_integer
  store ptr %failed, ptr @failed
  store ptr %unlock, ptr @unlock
  store ptr %lock, ptr @lock
  ret void
}

; The address of an object: of its memory, or the integer that it is. -1 with an error set where it is neither.
define internal i64 @address_of(ptr %object, ptr %view, i32 %flags) nounwind {
entry:
  %owner.at = getelementptr inbounds %view, ptr %view, i64 0, i32 1
  store ptr null, ptr %owner.at
  %asks = load ptr, ptr @has_buffer
  %has = call i32 %asks(ptr %object)
  %is.buffer = icmp ne i32 %has, 0
  br i1 %is.buffer, label %buffer, label %number
buffer:
  %get = load ptr, ptr @get_buffer
  %code = call i32 %get(ptr %object, ptr %view, i32 %flags)
  %bad = icmp slt i32 %code, 0
  br i1 %bad, label %none, label %got
got:
  %begin = load i64, ptr %view
  ret i64 %begin
none:
  ret i64 -1
number:
  %convert = load ptr, ptr @to_integer
  %value = call i64 %convert(ptr %object)
  ret i64 %value
}

define i64 @ow_launch(ptr %record, ptr %objects, i64 %lo, i64 %hi) nounwind {
entry:
  %kernel = load ptr, ptr %record
  %count.at = getelementptr inbounds i64, ptr %record, i64 1
  %count = load i64, ptr %count.at
  %held.at = getelementptr inbounds i64, ptr %record, i64 2
  %held = load i64, ptr %held.at
  %frees.at = getelementptr inbounds i64, ptr %record, i64 3
  %frees = load i64, ptr %frees.at
  %packed.at = getelementptr inbounds i64, ptr %record, i64 4
  %packed = load i64, ptr %packed.at
  %slots = getelementptr inbounds i64, ptr %record, i64 5
  %source = getelementptr inbounds i64, ptr %slots, i64 %held
  %words = alloca i64, i64 %count, align 16
  %views = alloca %view, i64 %held, align 16
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %words, ptr align 8 %source, i64 %bytes, i1 false)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %placed ]
  %more = icmp slt i64 %k, %held
  br i1 %more, label %take, label %run
take:
  %slot.at = getelementptr inbounds i64, ptr %slots, i64 %k
  %slot = load i64, ptr %slot.at
  %view = getelementptr inbounds %view, ptr %views, i64 %k
  %get.item = load ptr, ptr @item
  %object = call ptr %get.item(ptr %objects, i64 %k)
  %missing = icmp eq ptr %object, null
  br i1 %missing, label %refuse, label %ask
ask:
  %is.packed = icmp slt i64 %k, %packed
  %flags = select i1 %is.packed, i32 152, i32 24
  %address = call i64 @address_of(ptr %object, ptr %view, i32 %flags)
  %minus = icmp eq i64 %address, -1
  br i1 %minus, label %check, label %place
check:
  %asks = load ptr, ptr @failed
  %error = call ptr %asks()
  %is.error = icmp ne ptr %error, null
  br i1 %is.error, label %refuse, label %place
place:
  %used = icmp sge i64 %slot, 0
  br i1 %used, label %write, label %placed
write:
  %word = getelementptr inbounds i64, ptr %words, i64 %slot
  store i64 %address, ptr %word
  br label %placed
placed:
  %k.next = add i64 %k, 1
  br label %next
refuse:
  call void @release_all(ptr %views, i64 %k)
  ret i64 -1
run:
  %is.free = icmp ne i64 %frees, 0
  br i1 %is.free, label %free, label %hold
free:
  %unlock = load ptr, ptr @unlock
  %state = call ptr %unlock()
  %status.free = call i64 %kernel(ptr %words, i64 %lo, i64 %hi)
  %lock = load ptr, ptr @lock
  call void %lock(ptr %state)
  br label %done
hold:
  %status.held = call i64 %kernel(ptr %words, i64 %lo, i64 %hi)
  br label %done
done:
  %status = phi i64 [ %status.free, %free ], [ %status.held, %hold ]
  call void @release_all(ptr %views, i64 %held)
  ret i64 %status
}

define internal void @release_all(ptr %views, i64 %count) nounwind {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %one ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %exit
one:
  %view = getelementptr inbounds %view, ptr %views, i64 %k
  %let.go = load ptr, ptr @release
  call void %let.go(ptr %view)
  %k.next = add i64 %k, 1
  br label %next
exit:
  ret void
}

; The address of an object's memory, which its owner may move later.
define i64 @ow_address(ptr %object, i32 %flags) nounwind {
  %view = alloca %view, align 16
  %address = call i64 @address_of(ptr %object, ptr %view, i32 %flags)
  %let.go = load ptr, ptr @release
  call void %let.go(ptr %view)
  ret i64 %address
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
