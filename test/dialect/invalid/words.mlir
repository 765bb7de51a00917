// RUN: comms-opt %s -split-input-file -verify-diagnostics

// An unknown word of an operation's text: the error lists what is known and
// says what may have been meant.

comms.kernel @reduction(%x: !comms.window<8xf32>, %y: memref<8xf32>) {
  %team = comms.team world
  // expected-error @+1 {{got the unknown reduction kind 'summ': known are sum, prod, min, max, avg, and, or, xor; did you mean 'sum'?}}
  comms.all_reduce summ %team ins(%x : !comms.window<8xf32>) outs(%y : memref<8xf32>)
  comms.return
}

// -----

comms.kernel @no_word(%x: !comms.window<8xf32>, %y: memref<8xf32>) {
  %team = comms.team world
  // expected-error @+1 {{expected the reduction kind: one of sum, prod, min}}
  comms.all_reduce %team ins(%x : !comms.window<8xf32>) outs(%y : memref<8xf32>)
  comms.return
}

// -----

comms.kernel @team() {
  // expected-error @+1 {{got the unknown predefined team 'wrld': known are world, lsa, rail; did you mean 'world'?}}
  %team = comms.team wrld
  comms.return
}

// -----

comms.kernel @split() {
  %team = comms.team world
  // expected-error @+1 {{got the unknown kind of split 'Iner': known are inner, outer; did you mean 'inner'?}}
  %part = comms.team_split %team Iner 2
  comms.return
}

// -----

comms.kernel @signal(%s: !comms.signal<4>, %i: index) {
  %team = comms.team world
  // expected-error @+1 {{got the unknown kind of signal 'ink': known are set, inc, add; did you mean 'inc'?}}
  comms.signal ink %s[%i] at %i of %team : !comms.signal<4>
  comms.return
}

// -----

comms.kernel @wait(%s: !comms.signal<4>, %i: index, %v: i64) {
  // expected-error @+1 {{got the unknown comparison 'gee': known are eq, ge; did you mean 'ge'?}}
  comms.wait_signal %s[%i] gee %v : !comms.signal<4>
  comms.return
}

// -----

comms.kernel @order() {
  %team = comms.team world
  // expected-error @+1 {{got the unknown PTX memory order 'acqrel': known are relaxed, acquire, release, acq_rel; did you mean 'acq_rel'?}}
  comms.barrier %team block order acqrel
  comms.return
}

// -----

comms.kernel @scope() {
  // expected-error @+1 {{got the unknown PTX memory scope 'system': known are block, cluster, gpu, sys}}
  comms.fence acq_rel system
  comms.return
}

// -----

comms.kernel @proxy() {
  // expected-error @+1 {{got the unknown PTX memory proxy 'asink': known are generic, async, alias, copy_engine; did you mean 'async'?}}
  comms.fence acq_rel sys proxy asink
  comms.return
}

// -----

comms.kernel @extent() {
  %team = comms.team world
  // expected-error @+1 {{got the unknown barrier extent 'blokk': known are block, grid; did you mean 'block'?}}
  comms.barrier %team blokk
  comms.return
}

// -----

comms.kernel @pattern() {
  %team = comms.team world
  // expected-error @+1 {{got the unknown channel pattern 'pair': known are multicast, pairwise, single}}
  %c = comms.channel 0 pair over %team slots 1 : !comms.channel<ll, 16xf32>
  comms.return
}

// -----

comms.kernel @math(%x: f32) {
  // expected-error @+1 {{got the unknown math function 'tanx': known are acos}}
  %t = comms.math tanx(%x) : f32
  comms.return
}

// -----

comms.kernel @space() {
  // expected-error @+1 {{got the unknown memory space 'scratsh': known are multimem, scratch, shared; did you mean 'scratch'?}}
  %v = comms.scratch : memref<4xf32, #comms.space<scratsh>>
  comms.return
}

// -----

// expected-error @+1 {{got the unknown parameter of gin 'backnd': known are context_id, backend, fence; did you mean 'backend'?}}
#gin = #comms.gin<backnd = any>

// -----

// expected-error @+1 {{got the unknown parameter of gin 'fence': known are context_id, backend}}
#gin = #comms.gin<fence = gpu, fence = sys>

// -----

// expected-error @+1 {{got the unknown GIN backend 'all': known are any, proxy, gdaki; did you mean 'any'?}}
#gin = #comms.gin<backend = all>

// -----

// Types and attributes.

// expected-error @+1 {{unknown type of comms: 'windw': known are team, token, window, signal, counter, channel; did you mean 'window'?}}
comms.kernel @type(%x: !comms.windw<8xf32>) {
  comms.return
}

// -----

// expected-error @+1 {{unknown attribute of comms: 'spce'}}
comms.kernel @attribute(%x: memref<8xf32, #comms.spce<shared>>) {
  comms.return
}

// -----

// Operations.

// expected-error @+1 {{custom op 'comms.kernl' is unknown; did you mean 'comms.kernel'?}}
comms.kernl @k() {
}

// -----

comms.kernel @operation(%x: !comms.window<8xf32>, %y: memref<8xf32>) {
  %team = comms.team world
  // expected-error @+1 {{custom op 'comms.allreduce' is unknown; did you mean 'comms.all_reduce'?}}
  comms.allreduce sum %team ins(%x : !comms.window<8xf32>) outs(%y : memref<8xf32>)
  comms.return
}

// -----

comms.kernel @far() {
  // expected-error @+1 {{custom op 'comms.teleport' is unknown; comms has no such operation}}
  comms.teleport
  comms.return
}

// -----

comms.kernel @upstream() {
  // expected-error @+1 {{custom op 'arith.constnt' is unknown; did you mean 'arith.constant'?}}
  %c = arith.constnt 1 : index
  comms.return
}

// -----

comms.kernel @dialect() {
  // expected-error @+2 {{Dialect `coms' not found for custom op 'coms.team' ; did you mean 'comms.team'?}}
  // expected-note @+1 {{Available dialects}}
  %team = coms.team world
  comms.return
}

// -----

comms.kernel @prefix() {
  // expected-error-re @+2 {{Dialect `' not found for custom op 'team' {{.*}}: the operation before it does not take the word 'team' here, and no operation begins with it; did you mean 'comms.team'?}}
  // expected-note @+1 {{Available dialects}}
  team world
  comms.return
}

// -----

comms.kernel @rest_of_line() {
  %team = comms.team world
  // expected-error-re @+2 {{Dialect `' not found for custom op 'acq_rel' {{.*}}: the operation before it does not take the word 'acq_rel' here, and no operation begins with it}}
  // expected-note @+1 {{Available dialects}}
  comms.barrier %team block acq_rel
  comms.return
}

// -----

// Attributes of operations.

comms.kernel @attribute_name(%x: !comms.window<8xf32>, %y: memref<8xf32>) {
  %team = comms.team world
  // expected-error @+1 {{has no attribute 'algorithmx'; did you mean 'algorithm'?}}
  comms.all_reduce sum %team ins(%x : !comms.window<8xf32>) outs(%y : memref<8xf32>) {algorithmx = "ring"}
  comms.return
}

// -----

// expected-error @+1 {{has no attribute 'rnks'; did you mean 'ranks'?}}
comms.kernel @kernel_attribute() attributes {rnks = 2} {
  comms.return
}

// -----

comms.kernel @far_attribute() {
  // expected-error @+1 {{has no attribute 'origin'; attributes for other tools need a prefix, as in 'tool.name'}}
  %team = comms.team world {origin = "here"}
  comms.return
}

// -----

// The lowering chooses an algorithm for this one, too.
comms.kernel @send_recv(%x: !comms.window<8xf32>, %y: memref<8xf32>) {
  %team = comms.team world
  comms.send_recv %team from 0 to 1 ins(%x : !comms.window<8xf32>) outs(%y : memref<8xf32>) {algorithm = "one_shot"}
  comms.return
}

// -----

// With a prefix, attributes are for other tools.
comms.kernel @other_tools() attributes {tool.origin = "here"} {
  %team = comms.team world {tool.origin = "here"}
  comms.return
}
