// One argument of each kind; x, h and q travel from and to files.
comms.kernel @types(%x: memref<3xbf16>, %h: memref<3xf16>, %q: memref<3xf8E4M3FN>, %i: memref<3xi8>,
                    %w: !comms.window<3xi64>, %s: !comms.signal<2>) {
  comms.return
}
