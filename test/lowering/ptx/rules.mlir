// What NVPTX would translate without a word to something weaker is an error,
// whoever wrote it.
// RUN: comms-translate --split-input-file --verify-diagnostics --comms-to-ptx %s
// RUN: comms-translate --split-input-file --verify-diagnostics --comms-to-nvptx %s

// expected-error @+1 {{function 'adds' has an atomicrmw, whose order and scope NVPTX drops: use the instructions of lowering/nvvm/Ptx.inc}}
llvm.func @adds(%to: !llvm.ptr, %by: i64) {
  %0 = llvm.atomicrmw add %to, %by syncscope("") acq_rel : !llvm.ptr, i64
  llvm.return
}

// -----

// expected-error @+1 {{inline assembly 'fence.acq_rel.sys;' lacks side effects or the memory clobber}}
llvm.func @fences() {
  llvm.inline_asm has_side_effects "fence.acq_rel.sys;", "" : () -> ()
  llvm.return
}

// -----

// expected-error @+1 {{inline assembly 'ld.relaxed.sys.b64 $0, [$1];' lacks side effects or the memory clobber}}
llvm.func @loads(%from: !llvm.ptr) -> i64 {
  %0 = llvm.inline_asm "ld.relaxed.sys.b64 $0, [$1];", "=l,l,~{memory}" %from : (!llvm.ptr) -> i64
  llvm.return %0 : i64
}

// -----

// Both, and nothing is wrong.
llvm.func @pinned(%from: !llvm.ptr) -> i64 {
  %0 = llvm.inline_asm has_side_effects "ld.relaxed.sys.b64 $0, [$1];", "=l,l,~{memory}" %from : (!llvm.ptr) -> i64
  llvm.return %0 : i64
}
