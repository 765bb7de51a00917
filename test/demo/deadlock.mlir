// A barrier written by hand, in which one rank forgets its signal.
//
// Each rank signals every other rank, then waits until it has been signaled by
// all of them. Rank 2 leaves out rank 0, as a bound that is off by one would:
// rank 0 counts to N - 2 and waits forever, while the others go on.
//
// The checker finds it before anything runs, and says which rank waits, what it
// saw, what it wanted, and who did not signal:
//
//   comms-run deadlock.mlir --ranks 4              (exit status 4)
//
// Without the checker the same kernel runs until no block can go on; then the
// run ends with the same facts, measured:
//
//   comms-run deadlock.mlir --ranks 4 --no-check   (exit status 5)
//
// To repair it, delete the scf.if and signal every peer.

comms.kernel @forgetful_barrier(%arrived: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %team = comms.team world
  %rank = comms.rank %team
  %size = comms.size %team

  // In launch k a rank has been signaled k times by each of its peers. The
  // cell is never reset: a count that grows cannot lose a signal.
  %peers = arith.subi %size, %c1 : index
  %launch = comms.epoch
  %count = arith.muli %peers, %launch : index
  %wanted = arith.index_cast %count : index to i64

  comms.for_peers %team as %peer {
    %is_two = arith.cmpi eq, %rank, %c2 : index
    %is_zero = arith.cmpi eq, %peer, %c0 : index
    %forgets = arith.andi %is_two, %is_zero : i1
    scf.if %forgets {
      // Here the signal is missing.
    } else {
      comms.signal inc %arrived[%c0] at %peer of %team : !comms.signal<1>
    }
  }
  %all = comms.wait_signal %arrived[%c0] ge %wanted : !comms.signal<1>
  comms.return
}
