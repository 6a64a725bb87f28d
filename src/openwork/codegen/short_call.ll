; Functions of Python's calling convention for what a small operation asks most: a kernel's launch, and whether words in
; memory are what they were. They take a tenth of the time of a call by ctypes, and keep the GIL: for short work.
;
; Filled in by short_call.py: {TYPE} {COUNT} {BYTES} {DATA} {ITEMS}, the offsets of an object's type, of a bytes object's
; length and content, of an array's address, and of a tuple's first item.

@as_integer = internal global ptr null
@to_integer = internal global ptr null
@integers = internal global ptr null

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Python's functions between objects and integers, and the type of integers.
define i64 @ow_short_start(ptr %as, ptr %to, ptr %type) nounwind {
  store ptr %as, ptr @as_integer
  store ptr %to, ptr @to_integer
  store ptr %type, ptr @integers
  ret i64 1
}

; A method of a record, which is bytes: kernel, lo, hi, the number of words, the slot of each operand, words. It takes the
; operands, each an integer, a float or an array of NumPy, whose address is taken, and gives the kernel's status. A float
; has its bits where an array has its address.
define ptr @ow_short_launch(ptr %record, ptr %args, i64 %nargs) nounwind {
entry:
  %kernel.at = getelementptr i8, ptr %record, i64 {BYTES}
  %kernel = load ptr, ptr %kernel.at
  %lo.at = getelementptr i64, ptr %kernel.at, i64 1
  %lo = load i64, ptr %lo.at
  %hi.at = getelementptr i64, ptr %kernel.at, i64 2
  %hi = load i64, ptr %hi.at
  %count.at = getelementptr i64, ptr %kernel.at, i64 3
  %count = load i64, ptr %count.at
  %slots = getelementptr i64, ptr %kernel.at, i64 4
  %fixed = getelementptr i64, ptr %slots, i64 %nargs
  %words = alloca i64, i64 %count
  %size = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %fixed, i64 %size, i1 false)
  br label %head

head:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %more = icmp slt i64 %k, %nargs
  br i1 %more, label %body, label %run

body:
  %operand.at = getelementptr ptr, ptr %args, i64 %k
  %operand = load ptr, ptr %operand.at
  %type.at = getelementptr i8, ptr %operand, i64 {TYPE}
  %type = load ptr, ptr %type.at
  %integer = load ptr, ptr @integers
  %is.integer = icmp eq ptr %type, %integer
  br i1 %is.integer, label %number, label %array

number:
  %as = load ptr, ptr @as_integer
  %given = call i64 %as(ptr %operand)
  br label %put

array:
  %data.at = getelementptr i8, ptr %operand, i64 {DATA}
  %data = load i64, ptr %data.at
  br label %put

put:
  %word = phi i64 [ %given, %number ], [ %data, %array ]
  %slot.at = getelementptr i64, ptr %slots, i64 %k
  %slot = load i64, ptr %slot.at
  %word.at = getelementptr i64, ptr %words, i64 %slot
  store i64 %word, ptr %word.at
  %k.next = add i64 %k, 1
  br label %head

run:
  %status = call i64 %kernel(ptr %words, i64 %lo, i64 %hi)
  %to = load ptr, ptr @to_integer
  %out = call ptr %to(i64 %status)
  ret ptr %out
}

; same(record): 1 where every word of the record, which is bytes of pairs (address, word), is at its address, else 0. A
; pair is looked at once those before it hold, so that an address may depend on them.
define ptr @ow_short_same(ptr %self, ptr %record) nounwind {
entry:
  %count.at = getelementptr i8, ptr %record, i64 {COUNT}
  %count = load i64, ptr %count.at
  %first = getelementptr i8, ptr %record, i64 {BYTES}
  %end = getelementptr i8, ptr %first, i64 %count
  br label %head

head:
  %at = phi ptr [ %first, %entry ], [ %next, %pair ]
  %more = icmp ult ptr %at, %end
  br i1 %more, label %pair, label %done

pair:
  %address = load ptr, ptr %at
  %now = load i64, ptr %address
  %word.at = getelementptr i64, ptr %at, i64 1
  %word = load i64, ptr %word.at
  %next = getelementptr i64, ptr %at, i64 2
  %equal = icmp eq i64 %now, %word
  br i1 %equal, label %head, label %done

done:
  %result = phi i64 [ 1, %head ], [ 0, %pair ]
  %to = load ptr, ptr @to_integer
  %out = call ptr %to(i64 %result)
  ret ptr %out
}

; copy(value): a copy of an object with slots, in which one slot holds the value. The function is a method of a tuple: a
; record, which is bytes, and the object. The record: the functions that allocate and own, the first slot and the end, the
; slot of the value, and None with the bits of the slots that it is put into.
define ptr @ow_short_copy(ptr %self, ptr %value) nounwind {
  %record.at = getelementptr i8, ptr %self, i64 {ITEMS}
  %record = load ptr, ptr %record.at
  %object.at = getelementptr ptr, ptr %record.at, i64 1
  %object = load ptr, ptr %object.at
  %out = call ptr @copied(ptr %record, ptr %object, ptr %value)
  ret ptr %out
}

; copy(object, value): the same of any object of a type, a method of a record.
define ptr @ow_short_copy_of(ptr %record, ptr %args, i64 %nargs) nounwind {
  %object = load ptr, ptr %args
  %value.at = getelementptr ptr, ptr %args, i64 1
  %value = load ptr, ptr %value.at
  %out = call ptr @copied(ptr %record, ptr %object, ptr %value)
  ret ptr %out
}

define internal ptr @copied(ptr %record, ptr %object, ptr %value) nounwind {
entry:
  %words = getelementptr i8, ptr %record, i64 {BYTES}
  %allocate = load ptr, ptr %words
  %own.at = getelementptr ptr, ptr %words, i64 1
  %own = load ptr, ptr %own.at
  %begin.at = getelementptr i64, ptr %words, i64 2
  %begin = load i64, ptr %begin.at
  %end.at = getelementptr i64, ptr %words, i64 3
  %end = load i64, ptr %end.at
  %at.at = getelementptr i64, ptr %words, i64 4
  %at = load i64, ptr %at.at
  %none.at = getelementptr ptr, ptr %words, i64 5
  %none = load ptr, ptr %none.at
  %cleared.at = getelementptr i64, ptr %words, i64 6
  %cleared = load i64, ptr %cleared.at
  %type.at = getelementptr i8, ptr %object, i64 {TYPE}
  %type = load ptr, ptr %type.at
  %out = call ptr %allocate(ptr %type, i64 0)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %done, label %head

head:
  %k = phi i64 [ %begin, %entry ], [ %k.next, %next ]
  %bits = phi i64 [ %cleared, %entry ], [ %bits.next, %next ]
  %more = icmp ult i64 %k, %end
  br i1 %more, label %slot, label %done

slot:
  %slot.at = getelementptr i8, ptr %object, i64 %k
  %held = load ptr, ptr %slot.at
  %is.value = icmp eq i64 %k, %at
  %kept = select i1 %is.value, ptr %value, ptr %held
  %is.cleared = trunc i64 %bits to i1
  %item = select i1 %is.cleared, ptr %none, ptr %kept
  %is.empty = icmp eq ptr %item, null
  br i1 %is.empty, label %next, label %put

put:
  call void %own(ptr %item)
  %put.at = getelementptr i8, ptr %out, i64 %k
  store ptr %item, ptr %put.at
  br label %next

next:
  %k.next = add i64 %k, 8
  %bits.next = lshr i64 %bits, 1
  br label %head

done:
  ret ptr %out
}
