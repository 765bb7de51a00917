; A device library with an instruction that NVPTX makes weaker than it reads.
target triple = "nvptx64-nvidia-cuda"

define i32 @commsir_nccl_world_rank(i64 %comm) {
  %at = inttoptr i64 %comm to ptr
  %old = atomicrmw add ptr %at, i32 1 acq_rel
  ret i32 %old
}
