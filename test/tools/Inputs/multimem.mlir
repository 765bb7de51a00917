// Needs multicast addresses.
comms.kernel @mm(%w: !comms.window<512xbf16>) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %team = comms.team world
  comms.barrier %team block
  %all = comms.multimem %w of %team : !comms.window<512xbf16> -> memref<512xbf16, #comms.space<multimem>>
  %sum = comms.multimem_load_reduce sum %all[%c0] : memref<512xbf16, #comms.space<multimem>> -> tensor<256xbf16>
  comms.multimem_store %sum, %all[%c256] : tensor<256xbf16>, memref<512xbf16, #comms.space<multimem>>
  comms.return
}
