// neg
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.negate"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// abs
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.abs"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// sign
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.sign"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// exp
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.exponential"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// expm1
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.exponential_minus_one"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// log
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.log"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// log1p
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.log_plus_one"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// sqrt
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.sqrt"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// rsqrt
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.rsqrt"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// tanh
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.tanh"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// sigmoid
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.logistic"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// sin
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.sine"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// cos
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.cosine"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// floor
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.floor"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// ceil
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.ceil"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// round
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.round_nearest_even"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1) : (tensor<3x4xf32>) -> ()
  }
}
// silu
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %1 = "stablehlo.logistic"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %2 = "stablehlo.multiply"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// not
module @test {
  func.func public @main(%0: tensor<3x4xi1>) -> (tensor<3x4xi1>) {
    %1 = "stablehlo.not"(%0) : (tensor<3x4xi1>) -> tensor<3x4xi1>
    "func.return"(%1) : (tensor<3x4xi1>) -> ()
  }
}
// add
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.add"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// sub
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.subtract"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// mul
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.multiply"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// div
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.divide"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// maximum
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.maximum"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// minimum
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.minimum"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// pow
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.power"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// remainder
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xf32>) {
    %2 = "stablehlo.remainder"(%0, %1) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%2) : (tensor<3x4xf32>) -> ()
  }
}
// and
module @test {
  func.func public @main(%0: tensor<3x4xi1>, %1: tensor<3x4xi1>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.and"(%0, %1) : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// or
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi8>) {
    %2 = "stablehlo.or"(%0, %1) : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi8>
    "func.return"(%2) : (tensor<3x4xi8>) -> ()
  }
}
// xor
module @test {
  func.func public @main(%0: tensor<3x4xi1>, %1: tensor<3x4xi1>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.xor"(%0, %1) : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// shift_left
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi8>) {
    %2 = "stablehlo.shift_left"(%0, %1) : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi8>
    "func.return"(%2) : (tensor<3x4xi8>) -> ()
  }
}
// shift_right_arithmetic
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi8>) {
    %2 = "stablehlo.shift_right_arithmetic"(%0, %1) : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi8>
    "func.return"(%2) : (tensor<3x4xi8>) -> ()
  }
}
// eq
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// ne
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// lt
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<3x4xf32>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// le
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// gt
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// ge
module @test {
  func.func public @main(%0: tensor<3x4xi8>, %1: tensor<3x4xi8>) -> (tensor<3x4xi1>) {
    %2 = "stablehlo.compare"(%0, %1) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<3x4xi1>
    "func.return"(%2) : (tensor<3x4xi1>) -> ()
  }
}
// broadcast by name
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>, %1: tensor<4x2xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 2, 0>}> : (tensor<4x2xf32>) -> tensor<2x3x4xf32>
    %3 = "stablehlo.multiply"(%0, %2) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %4 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 2, 0>}> : (tensor<4x2xf32>) -> tensor<2x3x4xf32>
    %5 = "stablehlo.subtract"(%4, %0) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    "func.return"(%3, %5) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// select
module @test {
  func.func public @main(%0: tensor<3x4xf32>, %1: tensor<4xf32>, %2: tensor<3xi1>) -> (tensor<3x4xf32>) {
    %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3x4xi1>
    %4 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<3x4xf32>
    %5 = "stablehlo.select"(%3, %0, %4) : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%5) : (tensor<3x4xf32>) -> ()
  }
}
// convert
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi1>) {
    %1 = "stablehlo.convert"(%0) : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %2 = "stablehlo.convert"(%1) : (tensor<3x4xi32>) -> tensor<3x4xf32>
    %3 = "stablehlo.convert"(%0) : (tensor<3x4xf32>) -> tensor<3x4xi1>
    "func.return"(%2, %3) : (tensor<3x4xf32>, tensor<3x4xi1>) -> ()
  }
}
// bitcast
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xui32>) {
    %1 = "stablehlo.bitcast_convert"(%0) : (tensor<3x4xf32>) -> tensor<3x4xui32>
    %2 = "stablehlo.bitcast_convert"(%1) : (tensor<3x4xui32>) -> tensor<3x4xf32>
    %3 = "stablehlo.abs"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %4 = "stablehlo.bitcast_convert"(%3) : (tensor<3x4xf32>) -> tensor<3x4xui32>
    %5 = "stablehlo.constant"() <{value = dense<23> : tensor<ui32>}> : () -> tensor<ui32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x4xui32>
    %7 = "stablehlo.shift_right_logical"(%4, %6) : (tensor<3x4xui32>, tensor<3x4xui32>) -> tensor<3x4xui32>
    "func.return"(%2, %7) : (tensor<3x4xf32>, tensor<3x4xui32>) -> ()
  }
}
// reduce_precision
module @test {
  func.func public @main(%0: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
    %1 = "stablehlo.reduce_precision"(%0) <{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %2 = "stablehlo.reduce_precision"(%0) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1, %2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> ()
  }
}
// constants
module @test {
  func.func public @main(%0: tensor<2xf32>) -> (tensor<2x3xf32>, tensor<1x2x3xi1>, tensor<4xi32>, tensor<2xf32>, tensor<2x3xui8>, tensor<2x3xbf16>, tensor<2xf32>) {
    %1 = "stablehlo.constant"() <{value = dense<"0x0000803F000000C0000060400000807F000080FF6F12833A"> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
    %2 = "stablehlo.constant"() <{value = dense<[[[true, false, false], [true, true, false]]]> : tensor<1x2x3xi1>}> : () -> tensor<1x2x3xi1>
    %3 = "stablehlo.constant"() <{value = dense<"0x07000000F8FFFFFFFFFFFF7F00000080"> : tensor<4xi32>}> : () -> tensor<4xi32>
    %4 = "stablehlo.constant"() <{value = dense<0x7FC00000> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    %6 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xui8>
    %7 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2x3xbf16>
    %8 = "stablehlo.constant"() <{value = dense<-1.50000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
    "func.return"(%1, %2, %3, %5, %6, %7, %9) : (tensor<2x3xf32>, tensor<1x2x3xi1>, tensor<4xi32>, tensor<2xf32>, tensor<2x3xui8>, tensor<2x3xbf16>, tensor<2xf32>) -> ()
  }
}
// broadcast
module @test {
  func.func public @main(%0: tensor<4x2xf32>, %1: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>) {
    %2 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 2, 0>}> : (tensor<4x2xf32>) -> tensor<2x3x4xf32>
    "func.return"(%2) : (tensor<2x3x4xf32>) -> ()
  }
}
// transpose
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x4x3xf32>, tensor<3x2x4xf32>, tensor<3x4x2xf32>, tensor<4x2x3xf32>, tensor<4x3x2xf32>) {
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 0, 2, 1>}> : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    %2 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0, 2>}> : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
    %3 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 2, 0>}> : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %4 = "stablehlo.transpose"(%0) <{permutation = array<i64: 2, 0, 1>}> : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %5 = "stablehlo.transpose"(%0) <{permutation = array<i64: 2, 1, 0>}> : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
    "func.return"(%0, %1, %2, %3, %4, %5) : (tensor<2x3x4xf32>, tensor<2x4x3xf32>, tensor<3x2x4xf32>, tensor<3x4x2xf32>, tensor<4x2x3xf32>, tensor<4x3x2xf32>) -> ()
  }
}
// split, merge, rename, unsqueeze, squeeze
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<6x4xf32>, tensor<2x3x4xf32>, tensor<2x1x3x4xf32>, tensor<3x4xf32>) {
    %1 = "stablehlo.reshape"(%0) : (tensor<2x3x4xf32>) -> tensor<2x3x2x2xf32>
    %2 = "stablehlo.reshape"(%0) : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %3 = "stablehlo.reshape"(%0) : (tensor<2x3x4xf32>) -> tensor<2x1x3x4xf32>
    %4 = "stablehlo.slice"(%0) <{start_indices = array<i64: 1, 0, 0>, limit_indices = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf32>) -> tensor<1x3x4xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%1, %2, %0, %3, %5) : (tensor<2x3x2x2xf32>, tensor<6x4xf32>, tensor<2x3x4xf32>, tensor<2x1x3x4xf32>, tensor<3x4xf32>) -> ()
  }
}
// slice
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x2x4xf32>, tensor<2x3x2xf32>, tensor<2x1x4xf32>, tensor<0x3x4xf32>, tensor<2x3x4xf32>) {
    %1 = "stablehlo.slice"(%0) <{start_indices = array<i64: 0, 1, 0>, limit_indices = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf32>) -> tensor<2x2x4xf32>
    %2 = "stablehlo.slice"(%0) <{start_indices = array<i64: 0, 0, 1>, limit_indices = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 2>}> : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
    %3 = "stablehlo.slice"(%0) <{start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 2, 2, 4>, strides = array<i64: 1, 2, 1>}> : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
    %4 = "stablehlo.slice"(%0) <{start_indices = array<i64: 1, 0, 0>, limit_indices = array<i64: 1, 3, 4>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf32>) -> tensor<0x3x4xf32>
    "func.return"(%1, %2, %3, %4, %0) : (tensor<2x2x4xf32>, tensor<2x3x2xf32>, tensor<2x1x4xf32>, tensor<0x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// dynamic_slice, dynamic_update_slice
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>, %1: tensor<i32>, %2: tensor<i32>, %3: tensor<2x2x4xf32>) -> (tensor<2x2x4xf32>, tensor<2x3x2xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.dynamic_slice"(%0, %4, %1, %4) <{slice_sizes = array<i64: 2, 2, 4>}> : (tensor<2x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2x4xf32>
    %6 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %7 = "stablehlo.dynamic_slice"(%0, %6, %6, %2) <{slice_sizes = array<i64: 2, 3, 2>}> : (tensor<2x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x2xf32>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.dynamic_update_slice"(%0, %3, %8, %1, %8) : (tensor<2x3x4xf32>, tensor<2x2x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xf32>
    %10 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %11 = "stablehlo.dynamic_update_slice"(%0, %3, %10, %2, %10) : (tensor<2x3x4xf32>, tensor<2x2x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xf32>
    "func.return"(%5, %7, %9, %11) : (tensor<2x2x4xf32>, tensor<2x3x2xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// pad
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x6x4xf32>, tensor<2x3x1xf32>, tensor<2x3x4xf32>) {
    %1 = "stablehlo.constant"() <{value = dense<5.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.pad"(%0, %1) <{edge_padding_low = array<i64: 0, 1, 0>, edge_padding_high = array<i64: 0, 2, 0>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x6x4xf32>
    %3 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.pad"(%0, %3) <{edge_padding_low = array<i64: 0, 0, -1>, edge_padding_high = array<i64: 0, 0, -2>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x1xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.pad"(%0, %5) <{edge_padding_low = array<i64: 0, -1, 0>, edge_padding_high = array<i64: 0, 1, 0>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    "func.return"(%2, %4, %6) : (tensor<2x6x4xf32>, tensor<2x3x1xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// concat
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>, %1: tensor<2x1x4xf32>) -> (tensor<2x7x4xf32>, tensor<2x3x4xf32>) {
    %2 = "stablehlo.concatenate"(%0, %1, %0) <{dimension = 1 : i64}> : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x7x4xf32>
    "func.return"(%2, %0) : (tensor<2x7x4xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// reverse
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>) {
    %1 = "stablehlo.reverse"(%0) <{dimensions = array<i64: 1>}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    "func.return"(%1) : (tensor<2x3x4xf32>) -> ()
  }
}
// dot, several axes
module @test {
  func.func public @main(%0: tensor<2x3x2x2xf32>, %1: tensor<2x2x3x2xf32>, %2: tensor<3xf32>, %3: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<3x2xf32>, tensor<f32>) {
    %4 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [3, 1], lhs_contracting_dimensions = [1, 3], rhs_contracting_dimensions = [2, 0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3x2x2xf32>, tensor<2x2x3x2xf32>) -> tensor<2x2xf32>
    %5 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [], rhs_contracting_dimensions = []>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3xf32>, tensor<2xf32>) -> tensor<3x2xf32>
    %6 = "stablehlo.dot_general"(%2, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
    "func.return"(%4, %5, %6) : (tensor<2x2xf32>, tensor<3x2xf32>, tensor<f32>) -> ()
  }
}
// linear
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>, %1: tensor<2x2x4xf32>, %2: tensor<4x2x2xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x4xf32>) {
    %3 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3x4xf32>, tensor<2x2x4xf32>) -> tensor<2x3x2x2xf32>
    %4 = "stablehlo.dot_general"(%3, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2, 3], rhs_contracting_dimensions = [1, 2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3x2x2xf32>, tensor<4x2x2xf32>) -> tensor<2x3x4xf32>
    "func.return"(%3, %4) : (tensor<2x3x2x2xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// dot_as
module @test {
  func.func public @main(%0: tensor<2x4xf16>, %1: tensor<3x4xf16>) -> (tensor<2x3xf32>) {
    %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x4xf16>, tensor<3x4xf16>) -> tensor<2x3xf32>
    "func.return"(%2) : (tensor<2x3xf32>) -> ()
  }
}
// sum, max, min
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x4xf32>, tensor<3xf32>, tensor<f32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2x3x4xf32>) {
    %1 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({ ^bb0(%3: tensor<f32>, %4: tensor<f32>): %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%5) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %6 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.reduce"(%0, %6) <{dimensions = array<i64: 0, 2>}> ({ ^bb0(%8: tensor<f32>, %9: tensor<f32>): %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%10) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %11 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %12 = "stablehlo.reduce"(%0, %11) <{dimensions = array<i64: 0, 1, 2>}> ({ ^bb0(%13: tensor<f32>, %14: tensor<f32>): %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%15) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<f32>
    %16 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.reduce"(%0, %16) <{dimensions = array<i64: 2>}> ({ ^bb0(%18: tensor<f32>, %19: tensor<f32>): %20 = "stablehlo.maximum"(%18, %19) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%20) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3xf32>
    %21 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.reduce"(%0, %21) <{dimensions = array<i64: 0, 2>}> ({ ^bb0(%23: tensor<f32>, %24: tensor<f32>): %25 = "stablehlo.minimum"(%23, %24) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%25) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3xf32>
    "func.return"(%2, %7, %12, %17, %22, %0) : (tensor<2x4xf32>, tensor<3xf32>, tensor<f32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2x3x4xf32>) -> ()
  }
}
// any, all
module @test {
  func.func public @main(%0: tensor<2x3x4xi1>) -> (tensor<2x3xi1>, tensor<2x3xi1>, tensor<2x3xi1>) {
    %1 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 2>}> ({ ^bb0(%3: tensor<i1>, %4: tensor<i1>): %5 = "stablehlo.or"(%3, %4) : (tensor<i1>, tensor<i1>) -> tensor<i1> "stablehlo.return"(%5) : (tensor<i1>) -> () }) : (tensor<2x3x4xi1>, tensor<i1>) -> tensor<2x3xi1>
    %6 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %7 = "stablehlo.reduce"(%0, %6) <{dimensions = array<i64: 2>}> ({ ^bb0(%8: tensor<i1>, %9: tensor<i1>): %10 = "stablehlo.and"(%8, %9) : (tensor<i1>, tensor<i1>) -> tensor<i1> "stablehlo.return"(%10) : (tensor<i1>) -> () }) : (tensor<2x3x4xi1>, tensor<i1>) -> tensor<2x3xi1>
    %11 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %12 = "stablehlo.reduce"(%0, %11) <{dimensions = array<i64: 2>}> ({ ^bb0(%13: tensor<i1>, %14: tensor<i1>): %15 = "stablehlo.maximum"(%13, %14) : (tensor<i1>, tensor<i1>) -> tensor<i1> "stablehlo.return"(%15) : (tensor<i1>) -> () }) : (tensor<2x3x4xi1>, tensor<i1>) -> tensor<2x3xi1>
    "func.return"(%2, %7, %12) : (tensor<2x3xi1>, tensor<2x3xi1>, tensor<2x3xi1>) -> ()
  }
}
// argmax
module @test {
  func.func public @main(%0: tensor<2x3x4xf32>) -> (tensor<2x4xi32>, tensor<2x3xi32>) {
    %1 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({ ^bb0(%3: tensor<f32>, %4: tensor<f32>): %5 = "stablehlo.maximum"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%5) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %6 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
    %7 = "stablehlo.compare"(%0, %6) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi1>
    %8 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xi32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xi32>) -> tensor<2x3x4xi32>
    %10 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x4xi32>
    %12 = "stablehlo.select"(%7, %9, %11) : (tensor<2x3x4xi1>, tensor<2x3x4xi32>, tensor<2x3x4xi32>) -> tensor<2x3x4xi32>
    %13 = "stablehlo.constant"() <{value = dense<2147483647> : tensor<i32>}> : () -> tensor<i32>
    %14 = "stablehlo.reduce"(%12, %13) <{dimensions = array<i64: 1>}> ({ ^bb0(%15: tensor<i32>, %16: tensor<i32>): %17 = "stablehlo.minimum"(%15, %16) : (tensor<i32>, tensor<i32>) -> tensor<i32> "stablehlo.return"(%17) : (tensor<i32>) -> () }) : (tensor<2x3x4xi32>, tensor<i32>) -> tensor<2x4xi32>
    %18 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %19 = "stablehlo.reduce"(%0, %18) <{dimensions = array<i64: 2>}> ({ ^bb0(%20: tensor<f32>, %21: tensor<f32>): %22 = "stablehlo.maximum"(%20, %21) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%22) : (tensor<f32>) -> () }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3xf32>
    %23 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x3xf32>) -> tensor<2x3x4xf32>
    %24 = "stablehlo.compare"(%0, %23) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi1>
    %25 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %26 = "stablehlo.broadcast_in_dim"(%25) <{broadcast_dimensions = array<i64: 2>}> : (tensor<4xi32>) -> tensor<2x3x4xi32>
    %27 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
    %28 = "stablehlo.broadcast_in_dim"(%27) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<2x3x4xi32>
    %29 = "stablehlo.select"(%24, %26, %28) : (tensor<2x3x4xi1>, tensor<2x3x4xi32>, tensor<2x3x4xi32>) -> tensor<2x3x4xi32>
    %30 = "stablehlo.constant"() <{value = dense<2147483647> : tensor<i32>}> : () -> tensor<i32>
    %31 = "stablehlo.reduce"(%29, %30) <{dimensions = array<i64: 2>}> ({ ^bb0(%32: tensor<i32>, %33: tensor<i32>): %34 = "stablehlo.minimum"(%32, %33) : (tensor<i32>, tensor<i32>) -> tensor<i32> "stablehlo.return"(%34) : (tensor<i32>) -> () }) : (tensor<2x3x4xi32>, tensor<i32>) -> tensor<2x3xi32>
    "func.return"(%14, %31) : (tensor<2x4xi32>, tensor<2x3xi32>) -> ()
  }
}
// softmax, logsumexp, log_softmax
module @test {
  func.func public @main(%0: tensor<3x5xf32>, %1: tensor<3x5xi1>) -> (tensor<3x5xf32>, tensor<3xf32>, tensor<3x5xf32>) {
    %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xi32>
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<3xi32>
    %5 = "stablehlo.compare"(%2, %4) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3x5xi1>
    %7 = "stablehlo.and"(%1, %6) : (tensor<3x5xi1>, tensor<3x5xi1>) -> tensor<3x5xi1>
    %8 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3x5xf32>
    %10 = "stablehlo.select"(%7, %0, %9) : (tensor<3x5xi1>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    %11 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %12 = "stablehlo.reduce"(%10, %11) <{dimensions = array<i64: 1>}> ({ ^bb0(%13: tensor<f32>, %14: tensor<f32>): %15 = "stablehlo.maximum"(%13, %14) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%15) : (tensor<f32>) -> () }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %16 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %18 = "stablehlo.compare"(%12, %17) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %19 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %21 = "stablehlo.select"(%18, %20, %12) : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %22 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xf32>) -> tensor<3x5xf32>
    %23 = "stablehlo.subtract"(%10, %22) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    %24 = "stablehlo.exponential"(%23) : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %25 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %26 = "stablehlo.reduce"(%24, %25) <{dimensions = array<i64: 1>}> ({ ^bb0(%27: tensor<f32>, %28: tensor<f32>): %29 = "stablehlo.add"(%27, %28) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%29) : (tensor<f32>) -> () }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %30 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %31 = "stablehlo.broadcast_in_dim"(%30) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %32 = "stablehlo.compare"(%26, %31) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %33 = "stablehlo.constant"() <{value = dense<1.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %34 = "stablehlo.broadcast_in_dim"(%33) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %35 = "stablehlo.select"(%32, %34, %26) : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %36 = "stablehlo.broadcast_in_dim"(%35) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xf32>) -> tensor<3x5xf32>
    %37 = "stablehlo.divide"(%24, %36) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    %38 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %39 = "stablehlo.reduce"(%10, %38) <{dimensions = array<i64: 1>}> ({ ^bb0(%40: tensor<f32>, %41: tensor<f32>): %42 = "stablehlo.maximum"(%40, %41) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%42) : (tensor<f32>) -> () }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %43 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %44 = "stablehlo.broadcast_in_dim"(%43) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %45 = "stablehlo.compare"(%39, %44) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %46 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %47 = "stablehlo.broadcast_in_dim"(%46) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %48 = "stablehlo.select"(%45, %47, %39) : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %49 = "stablehlo.broadcast_in_dim"(%48) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xf32>) -> tensor<3x5xf32>
    %50 = "stablehlo.subtract"(%10, %49) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    %51 = "stablehlo.exponential"(%50) : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %52 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %53 = "stablehlo.reduce"(%51, %52) <{dimensions = array<i64: 1>}> ({ ^bb0(%54: tensor<f32>, %55: tensor<f32>): %56 = "stablehlo.add"(%54, %55) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%56) : (tensor<f32>) -> () }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %57 = "stablehlo.log"(%53) : (tensor<3xf32>) -> tensor<3xf32>
    %58 = "stablehlo.add"(%57, %48) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %59 = "stablehlo.is_finite"(%58) : (tensor<3xf32>) -> tensor<3xi1>
    %60 = "stablehlo.constant"() <{value = dense<-7.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %61 = "stablehlo.broadcast_in_dim"(%60) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %62 = "stablehlo.select"(%59, %58, %61) : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %63 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %64 = "stablehlo.reduce"(%0, %63) <{dimensions = array<i64: 1>}> ({ ^bb0(%65: tensor<f32>, %66: tensor<f32>): %67 = "stablehlo.maximum"(%65, %66) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%67) : (tensor<f32>) -> () }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %68 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %69 = "stablehlo.broadcast_in_dim"(%68) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %70 = "stablehlo.compare"(%64, %69) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %71 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %72 = "stablehlo.broadcast_in_dim"(%71) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %73 = "stablehlo.select"(%70, %72, %64) : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %74 = "stablehlo.broadcast_in_dim"(%73) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xf32>) -> tensor<3x5xf32>
    %75 = "stablehlo.subtract"(%0, %74) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    %76 = "stablehlo.exponential"(%75) : (tensor<3x5xf32>) -> tensor<3x5xf32>
    %77 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %78 = "stablehlo.reduce"(%76, %77) <{dimensions = array<i64: 1>}> ({ ^bb0(%79: tensor<f32>, %80: tensor<f32>): %81 = "stablehlo.add"(%79, %80) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%81) : (tensor<f32>) -> () }) : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
    %82 = "stablehlo.log"(%78) : (tensor<3xf32>) -> tensor<3xf32>
    %83 = "stablehlo.add"(%82, %73) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %84 = "stablehlo.broadcast_in_dim"(%83) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xf32>) -> tensor<3x5xf32>
    %85 = "stablehlo.subtract"(%0, %84) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
    "func.return"(%37, %62, %85) : (tensor<3x5xf32>, tensor<3xf32>, tensor<3x5xf32>) -> ()
  }
}
// take
module @test {
  func.func public @main(%0: tensor<5x2xf32>, %1: tensor<2x3xi32>) -> (tensor<2x3x2xf32>, tensor<3xf32>) {
    %2 = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false}> : (tensor<5x2xf32>, tensor<2x3xi32>) -> tensor<2x3x2xf32>
    %3 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.reduce"(%0, %3) <{dimensions = array<i64: 1>}> ({ ^bb0(%5: tensor<f32>, %6: tensor<f32>): %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%7) : (tensor<f32>) -> () }) : (tensor<5x2xf32>, tensor<f32>) -> tensor<5xf32>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.reduce"(%1, %8) <{dimensions = array<i64: 0>}> ({ ^bb0(%10: tensor<i32>, %11: tensor<i32>): %12 = "stablehlo.add"(%10, %11) : (tensor<i32>, tensor<i32>) -> tensor<i32> "stablehlo.return"(%12) : (tensor<i32>) -> () }) : (tensor<2x3xi32>, tensor<i32>) -> tensor<3xi32>
    %13 = "stablehlo.gather"(%4, %9) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<5xf32>, tensor<3xi32>) -> tensor<3xf32>
    "func.return"(%2, %13) : (tensor<2x3x2xf32>, tensor<3xf32>) -> ()
  }
}
// scatter_add
module @test {
  func.func public @main(%0: tensor<5x2xf32>, %1: tensor<2x3xi32>, %2: tensor<2x3x2xf32>) -> (tensor<5x2xf32>) {
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false}> ({ ^bb0(%4: tensor<f32>, %5: tensor<f32>): %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%6) : (tensor<f32>) -> () }) : (tensor<5x2xf32>, tensor<2x3xi32>, tensor<2x3x2xf32>) -> tensor<5x2xf32>
    "func.return"(%3) : (tensor<5x2xf32>) -> ()
  }
}
// one_hot
module @test {
  func.func public @main(%0: tensor<2x3xi32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xi1>) {
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x3xi32>) -> tensor<2x3x4xi32>
    %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 2>}> : (tensor<4xi32>) -> tensor<2x3x4xi32>
    %4 = "stablehlo.compare"(%1, %3) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x3x4xi32>, tensor<2x3x4xi32>) -> tensor<2x3x4xi1>
    %5 = "stablehlo.convert"(%4) : (tensor<2x3x4xi1>) -> tensor<2x3x4xf32>
    %6 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x3xi32>) -> tensor<2x3x4xi32>
    %7 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64: 2>}> : (tensor<4xi32>) -> tensor<2x3x4xi32>
    %9 = "stablehlo.compare"(%6, %8) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<2x3x4xi32>, tensor<2x3x4xi32>) -> tensor<2x3x4xi1>
    "func.return"(%5, %9) : (tensor<2x3x4xf32>, tensor<2x3x4xi1>) -> ()
  }
}
// sort, argsort, sort_with
module @test {
  func.func public @main(%0: tensor<3x4x2xf32>, %1: tensor<3x4x2xf32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>, tensor<3x4x2xf32>, tensor<3x4x2xi32>, tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x2xf32>) {
    %2 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x2xi32>
    %3, %4 = "stablehlo.sort"(%0, %2) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%5: tensor<f32>, %6: tensor<f32>, %7: tensor<i32>, %8: tensor<i32>): %9 = "stablehlo.compare"(%5, %6) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%9) : (tensor<i1>) -> () }) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>)
    %10 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x2xi32>
    %11, %12 = "stablehlo.sort"(%0, %10) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%13: tensor<f32>, %14: tensor<f32>, %15: tensor<i32>, %16: tensor<i32>): %17 = "stablehlo.compare"(%13, %14) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%17) : (tensor<i1>) -> () }) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>)
    %18 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x2xi32>
    %19, %20 = "stablehlo.sort"(%0, %18) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%21: tensor<f32>, %22: tensor<f32>, %23: tensor<i32>, %24: tensor<i32>): %25 = "stablehlo.compare"(%21, %22) <{comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%25) : (tensor<i1>) -> () }) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>)
    %26 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x2xi32>
    %27, %28 = "stablehlo.sort"(%0, %26) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%29: tensor<f32>, %30: tensor<f32>, %31: tensor<i32>, %32: tensor<i32>): %33 = "stablehlo.compare"(%29, %30) <{comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%33) : (tensor<i1>) -> () }) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>)
    %34 = "stablehlo.multiply"(%0, %0) : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
    %35 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x2xi32>
    %36, %37, %38, %39 = "stablehlo.sort"(%0, %1, %34, %35) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%40: tensor<f32>, %41: tensor<f32>, %42: tensor<f32>, %43: tensor<f32>, %44: tensor<f32>, %45: tensor<f32>, %46: tensor<i32>, %47: tensor<i32>): %48 = "stablehlo.compare"(%40, %41) <{comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%48) : (tensor<i1>) -> () }) : (tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x2xi32>)
    "func.return"(%3, %12, %19, %28, %36, %37, %38) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>, tensor<3x4x2xf32>, tensor<3x4x2xi32>, tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> ()
  }
}
// top_k
module @test {
  func.func public @main(%0: tensor<3x4x2xf32>) -> (tensor<3x2x2xf32>, tensor<3x2x2xi32>) {
    %1 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x2xi32>
    %2, %3 = "stablehlo.sort"(%0, %1) <{dimension = 1 : i64, is_stable = true}> ({ ^bb0(%4: tensor<f32>, %5: tensor<f32>, %6: tensor<i32>, %7: tensor<i32>): %8 = "stablehlo.compare"(%4, %5) <{comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%8) : (tensor<i1>) -> () }) : (tensor<3x4x2xf32>, tensor<3x4x2xi32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xi32>)
    %9 = "stablehlo.slice"(%2) <{start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 3, 2, 2>, strides = array<i64: 1, 1, 1>}> : (tensor<3x4x2xf32>) -> tensor<3x2x2xf32>
    %10 = "stablehlo.slice"(%3) <{start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 3, 2, 2>, strides = array<i64: 1, 1, 1>}> : (tensor<3x4x2xi32>) -> tensor<3x2x2xi32>
    "func.return"(%9, %10) : (tensor<3x2x2xf32>, tensor<3x2x2xi32>) -> ()
  }
}
// take_along
module @test {
  func.func public @main(%0: tensor<2x4x3xf32>, %1: tensor<2x5x3xi32>) -> (tensor<2x5x3xf32>, tensor<5xf32>) {
    %2 = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0, 2], start_indices_batching_dims = [0, 2], start_index_map = [1], index_vector_dim = 3>, slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = false}> : (tensor<2x4x3xf32>, tensor<2x5x3xi32>) -> tensor<2x5x3xf32>
    %3 = "stablehlo.slice"(%0) <{start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 2, 4, 1>, strides = array<i64: 1, 1, 1>}> : (tensor<2x4x3xf32>) -> tensor<2x4x1xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<2x4x1xf32>) -> tensor<2x4xf32>
    %5 = "stablehlo.slice"(%4) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 4>, strides = array<i64: 1, 1>}> : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %6 = "stablehlo.reshape"(%5) : (tensor<1x4xf32>) -> tensor<4xf32>
    %7 = "stablehlo.slice"(%1) <{start_indices = array<i64: 0, 0, 0>, limit_indices = array<i64: 2, 5, 1>, strides = array<i64: 1, 1, 1>}> : (tensor<2x5x3xi32>) -> tensor<2x5x1xi32>
    %8 = "stablehlo.reshape"(%7) : (tensor<2x5x1xi32>) -> tensor<2x5xi32>
    %9 = "stablehlo.slice"(%8) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 5>, strides = array<i64: 1, 1>}> : (tensor<2x5xi32>) -> tensor<1x5xi32>
    %10 = "stablehlo.reshape"(%9) : (tensor<1x5xi32>) -> tensor<5xi32>
    %11 = "stablehlo.gather"(%6, %10) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<4xf32>, tensor<5xi32>) -> tensor<5xf32>
    "func.return"(%2, %11) : (tensor<2x5x3xf32>, tensor<5xf32>) -> ()
  }
}
// scatter_add_along
module @test {
  func.func public @main(%0: tensor<2x4x3xf32>, %1: tensor<2x5x3xi32>, %2: tensor<2x5x3xf32>) -> (tensor<2x4x3xf32>) {
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0, 2], scatter_indices_batching_dims = [0, 2], scatter_dims_to_operand_dims = [1], index_vector_dim = 3>, indices_are_sorted = false, unique_indices = false}> ({ ^bb0(%4: tensor<f32>, %5: tensor<f32>): %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%6) : (tensor<f32>) -> () }) : (tensor<2x4x3xf32>, tensor<2x5x3xi32>, tensor<2x5x3xf32>) -> tensor<2x4x3xf32>
    "func.return"(%3) : (tensor<2x4x3xf32>) -> ()
  }
}
// scan
module @test {
  func.func public @main(%0: tensor<3xf32>, %1: tensor<4x3xf32>, %2: tensor<3x3xf32>, %3: tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>) {
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %10 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22 = "stablehlo.while"(%5, %0, %4, %3, %0, %7, %9, %11, %1, %2, %1) ({
      ^bb0(%23: tensor<i32>, %24: tensor<3xf32>, %25: tensor<i32>, %26: tensor<3xf32>, %27: tensor<3xf32>, %28: tensor<4x3xf32>, %29: tensor<4xi32>, %30: tensor<4x3xf32>, %31: tensor<4x3xf32>, %32: tensor<3x3xf32>, %33: tensor<4x3xf32>):
      %34 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %35 = "stablehlo.compare"(%23, %34) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%35) : (tensor<i1>) -> ()
    }, {
      ^bb0(%36: tensor<i32>, %37: tensor<3xf32>, %38: tensor<i32>, %39: tensor<3xf32>, %40: tensor<3xf32>, %41: tensor<4x3xf32>, %42: tensor<4xi32>, %43: tensor<4x3xf32>, %44: tensor<4x3xf32>, %45: tensor<3x3xf32>, %46: tensor<4x3xf32>):
      %47 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %48 = "stablehlo.dynamic_slice"(%44, %36, %47) <{slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
      %49 = "stablehlo.reshape"(%48) : (tensor<1x3xf32>) -> tensor<3xf32>
      %50 = "stablehlo.dot_general"(%37, %45) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
      %51 = "stablehlo.convert"(%38) : (tensor<i32>) -> tensor<f32>
      %52 = "stablehlo.constant"() <{value = dense<1.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %53 = "stablehlo.add"(%51, %52) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %54 = "stablehlo.broadcast_in_dim"(%53) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
      %55 = "stablehlo.multiply"(%49, %54) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %56 = "stablehlo.add"(%50, %55) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %57 = "stablehlo.tanh"(%56) : (tensor<3xf32>) -> tensor<3xf32>
      %58 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %59 = "stablehlo.add"(%38, %58) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %60 = "stablehlo.add"(%37, %40) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %61 = "stablehlo.multiply"(%60, %39) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %62 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<4x3xf32>
      %63 = "stablehlo.multiply"(%46, %62) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
      %64 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %65 = "stablehlo.reduce"(%63, %64) <{dimensions = array<i64: 0>}> ({ ^bb0(%66: tensor<f32>, %67: tensor<f32>): %68 = "stablehlo.add"(%66, %67) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%68) : (tensor<f32>) -> () }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
      %69 = "stablehlo.reshape"(%61) : (tensor<3xf32>) -> tensor<1x3xf32>
      %70 = "stablehlo.dynamic_update_slice"(%41, %69, %36, %47) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      %71 = "stablehlo.reshape"(%38) : (tensor<i32>) -> tensor<1xi32>
      %72 = "stablehlo.dynamic_update_slice"(%42, %71, %36) : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
      %73 = "stablehlo.reshape"(%65) : (tensor<3xf32>) -> tensor<1x3xf32>
      %74 = "stablehlo.dynamic_update_slice"(%43, %73, %36, %47) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      %75 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %76 = "stablehlo.add"(%36, %75) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%76, %57, %59, %39, %49, %70, %72, %74, %44, %45, %46) : (tensor<i32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>) -> ()
    }) : (tensor<i32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>)
    "func.return"(%13, %14, %15, %16, %17, %18, %19) : (tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>) -> ()
  }
}
// scan, reverse
module @test {
  func.func public @main(%0: tensor<3xf32>, %1: tensor<4x3xf32>, %2: tensor<3x3xf32>, %3: tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>) {
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<4xi32>
    %10 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22 = "stablehlo.while"(%5, %0, %4, %3, %0, %7, %9, %11, %1, %2, %1) ({
      ^bb0(%23: tensor<i32>, %24: tensor<3xf32>, %25: tensor<i32>, %26: tensor<3xf32>, %27: tensor<3xf32>, %28: tensor<4x3xf32>, %29: tensor<4xi32>, %30: tensor<4x3xf32>, %31: tensor<4x3xf32>, %32: tensor<3x3xf32>, %33: tensor<4x3xf32>):
      %34 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %35 = "stablehlo.compare"(%23, %34) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%35) : (tensor<i1>) -> ()
    }, {
      ^bb0(%36: tensor<i32>, %37: tensor<3xf32>, %38: tensor<i32>, %39: tensor<3xf32>, %40: tensor<3xf32>, %41: tensor<4x3xf32>, %42: tensor<4xi32>, %43: tensor<4x3xf32>, %44: tensor<4x3xf32>, %45: tensor<3x3xf32>, %46: tensor<4x3xf32>):
      %47 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %48 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %49 = "stablehlo.subtract"(%48, %36) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %50 = "stablehlo.dynamic_slice"(%44, %49, %47) <{slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
      %51 = "stablehlo.reshape"(%50) : (tensor<1x3xf32>) -> tensor<3xf32>
      %52 = "stablehlo.dot_general"(%37, %45) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
      %53 = "stablehlo.convert"(%38) : (tensor<i32>) -> tensor<f32>
      %54 = "stablehlo.constant"() <{value = dense<1.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %55 = "stablehlo.add"(%53, %54) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %56 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
      %57 = "stablehlo.multiply"(%51, %56) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %58 = "stablehlo.add"(%52, %57) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %59 = "stablehlo.tanh"(%58) : (tensor<3xf32>) -> tensor<3xf32>
      %60 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %61 = "stablehlo.add"(%38, %60) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %62 = "stablehlo.add"(%37, %40) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %63 = "stablehlo.multiply"(%62, %39) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %64 = "stablehlo.broadcast_in_dim"(%37) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<4x3xf32>
      %65 = "stablehlo.multiply"(%46, %64) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
      %66 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %67 = "stablehlo.reduce"(%65, %66) <{dimensions = array<i64: 0>}> ({ ^bb0(%68: tensor<f32>, %69: tensor<f32>): %70 = "stablehlo.add"(%68, %69) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%70) : (tensor<f32>) -> () }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
      %71 = "stablehlo.reshape"(%63) : (tensor<3xf32>) -> tensor<1x3xf32>
      %72 = "stablehlo.dynamic_update_slice"(%41, %71, %49, %47) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      %73 = "stablehlo.reshape"(%38) : (tensor<i32>) -> tensor<1xi32>
      %74 = "stablehlo.dynamic_update_slice"(%42, %73, %49) : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
      %75 = "stablehlo.reshape"(%67) : (tensor<3xf32>) -> tensor<1x3xf32>
      %76 = "stablehlo.dynamic_update_slice"(%43, %75, %49, %47) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      %77 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %78 = "stablehlo.add"(%36, %77) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%78, %59, %61, %39, %51, %72, %74, %76, %44, %45, %46) : (tensor<i32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>) -> ()
    }) : (tensor<i32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>) -> (tensor<i32>, tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x3xf32>)
    "func.return"(%13, %14, %15, %16, %17, %18, %19) : (tensor<3xf32>, tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4xi32>, tensor<4x3xf32>) -> ()
  }
}
// scan without carries
module @test {
  func.func public @main(%0: tensor<4x3xf32>, %1: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x3xf32>
    %7, %8, %9, %10, %11 = "stablehlo.while"(%2, %4, %6, %0, %1) ({
      ^bb0(%12: tensor<i32>, %13: tensor<4x3xf32>, %14: tensor<4x3xf32>, %15: tensor<4x3xf32>, %16: tensor<3xf32>):
      %17 = "stablehlo.constant"() <{value = dense<4> : tensor<i32>}> : () -> tensor<i32>
      %18 = "stablehlo.compare"(%12, %17) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%18) : (tensor<i1>) -> ()
    }, {
      ^bb0(%19: tensor<i32>, %20: tensor<4x3xf32>, %21: tensor<4x3xf32>, %22: tensor<4x3xf32>, %23: tensor<3xf32>):
      %24 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %25 = "stablehlo.dynamic_slice"(%22, %19, %24) <{slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
      %26 = "stablehlo.reshape"(%25) : (tensor<1x3xf32>) -> tensor<3xf32>
      %27 = "stablehlo.multiply"(%26, %23) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %28 = "stablehlo.reshape"(%27) : (tensor<3xf32>) -> tensor<1x3xf32>
      %29 = "stablehlo.dynamic_update_slice"(%20, %28, %19, %24) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      %30 = "stablehlo.reshape"(%23) : (tensor<3xf32>) -> tensor<1x3xf32>
      %31 = "stablehlo.dynamic_update_slice"(%21, %30, %19, %24) : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
      %32 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %33 = "stablehlo.add"(%19, %32) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%33, %29, %31, %22, %23) : (tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> ()
    }) : (tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> (tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>)
    "func.return"(%8, %9) : (tensor<4x3xf32>, tensor<4x3xf32>) -> ()
  }
}
// cond
module @test {
  func.func public @main(%0: tensor<3xf32>, %1: tensor<3xf32>, %2: tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %3 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.compare"(%2, %3) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5, %6 = "stablehlo.if"(%4) ({
      %7 = "stablehlo.multiply"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      "stablehlo.return"(%7, %0) : (tensor<3xf32>, tensor<3xf32>) -> ()
    }, {
      %8 = "stablehlo.sine"(%1) : (tensor<3xf32>) -> tensor<3xf32>
      %9 = "stablehlo.add"(%0, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      "stablehlo.return"(%8, %9) : (tensor<3xf32>, tensor<3xf32>) -> ()
    }) : (tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>)
    %10 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %11 = "stablehlo.compare"(%2, %10) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %12, %13 = "stablehlo.if"(%11) ({
      %14 = "stablehlo.multiply"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      "stablehlo.return"(%14, %0) : (tensor<3xf32>, tensor<3xf32>) -> ()
    }, {
      %15 = "stablehlo.sine"(%1) : (tensor<3xf32>) -> tensor<3xf32>
      %16 = "stablehlo.add"(%0, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      "stablehlo.return"(%15, %16) : (tensor<3xf32>, tensor<3xf32>) -> ()
    }) : (tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>)
    "func.return"(%5, %6, %12, %13) : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> ()
  }
}
// while
module @test {
  func.func public @main(%0: tensor<3xf32>) -> (tensor<3xf32>, tensor<i1>) {
    %1 = "stablehlo.constant"() <{value = dense<1.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %4, %5, %6 = "stablehlo.while"(%2, %3, %0) ({
      ^bb0(%7: tensor<3xf32>, %8: tensor<i32>, %9: tensor<3xf32>):
      %10 = "stablehlo.multiply"(%7, %7) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %11 = "stablehlo.subtract"(%10, %9) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %12 = "stablehlo.abs"(%11) : (tensor<3xf32>) -> tensor<3xf32>
      %13 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
      %14 = "stablehlo.reduce"(%12, %13) <{dimensions = array<i64: 0>}> ({ ^bb0(%15: tensor<f32>, %16: tensor<f32>): %17 = "stablehlo.maximum"(%15, %16) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%17) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      %18 = "stablehlo.constant"() <{value = dense<9.99999975e-06> : tensor<f32>}> : () -> tensor<f32>
      %19 = "stablehlo.compare"(%14, %18) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %20 = "stablehlo.constant"() <{value = dense<50> : tensor<i32>}> : () -> tensor<i32>
      %21 = "stablehlo.compare"(%8, %20) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %22 = "stablehlo.and"(%19, %21) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%22) : (tensor<i1>) -> ()
    }, {
      ^bb0(%23: tensor<3xf32>, %24: tensor<i32>, %25: tensor<3xf32>):
      %26 = "stablehlo.divide"(%25, %23) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %27 = "stablehlo.add"(%23, %26) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %28 = "stablehlo.constant"() <{value = dense<5.00000000e-01> : tensor<f32>}> : () -> tensor<f32>
      %29 = "stablehlo.broadcast_in_dim"(%28) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
      %30 = "stablehlo.multiply"(%27, %29) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %31 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %32 = "stablehlo.add"(%24, %31) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%30, %32, %25) : (tensor<3xf32>, tensor<i32>, tensor<3xf32>) -> ()
    }) : (tensor<3xf32>, tensor<i32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>, tensor<3xf32>)
    %33 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
    %34 = "stablehlo.compare"(%5, %33) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "func.return"(%4, %34) : (tensor<3xf32>, tensor<i1>) -> ()
  }
}
// optimization_barrier
module @test {
  func.func public @main(%0: tensor<3xf32>, %1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %2 = "stablehlo.sine"(%0) : (tensor<3xf32>) -> tensor<3xf32>
    %3, %4 = "stablehlo.optimization_barrier"(%2, %1) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    "func.return"(%3, %4) : (tensor<3xf32>, tensor<3xf32>) -> ()
  }
}
// call
module @test {
  func.func private @layer(%0: tensor<3xf32>, %1: tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
    %3 = "stablehlo.tanh"(%2) : (tensor<3xf32>) -> tensor<3xf32>
    %4 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.reduce"(%2, %4) <{dimensions = array<i64: 0>}> ({ ^bb0(%6: tensor<f32>, %7: tensor<f32>): %8 = "stablehlo.maximum"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%8) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %9 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.compare"(%5, %9) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %11 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %12 = "stablehlo.select"(%10, %11, %5) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %14 = "stablehlo.subtract"(%2, %13) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %15 = "stablehlo.exponential"(%14) : (tensor<3xf32>) -> tensor<3xf32>
    %16 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.reduce"(%15, %16) <{dimensions = array<i64: 0>}> ({ ^bb0(%18: tensor<f32>, %19: tensor<f32>): %20 = "stablehlo.add"(%18, %19) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%20) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %21 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.compare"(%17, %21) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %23 = "stablehlo.constant"() <{value = dense<1.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %24 = "stablehlo.select"(%22, %23, %17) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %25 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %26 = "stablehlo.divide"(%15, %25) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %27 = "stablehlo.multiply"(%26, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %28 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %29 = "stablehlo.reduce"(%27, %28) <{dimensions = array<i64: 0>}> ({ ^bb0(%30: tensor<f32>, %31: tensor<f32>): %32 = "stablehlo.add"(%30, %31) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%32) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%3, %29) : (tensor<3xf32>, tensor<f32>) -> ()
  }
  func.func public @main(%33: tensor<3xf32>, %34: tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>, tensor<3xf32>) {
    %35, %36 = "func.call"(%33, %34) <{callee = @layer}> : (tensor<3xf32>, tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>)
    %37, %38 = "func.call"(%35, %34) <{callee = @layer}> : (tensor<3xf32>, tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>)
    %39 = "stablehlo.add"(%36, %38) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %40 = "stablehlo.constant"() <{value = dense<5.00000000e-01> : tensor<f32>}> : () -> tensor<f32>
    %41 = "stablehlo.broadcast_in_dim"(%40) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %42, %43 = "func.call"(%41, %34) <{callee = @layer}> : (tensor<3xf32>, tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>)
    "func.return"(%37, %39, %42) : (tensor<3xf32>, tensor<f32>, tensor<3xf32>) -> ()
  }
}
// composite
module @test {
  func.func private @layer(%0: tensor<3xf32>, %1: tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
    %3 = "stablehlo.tanh"(%2) : (tensor<3xf32>) -> tensor<3xf32>
    %4 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %5 = "stablehlo.reduce"(%2, %4) <{dimensions = array<i64: 0>}> ({ ^bb0(%6: tensor<f32>, %7: tensor<f32>): %8 = "stablehlo.maximum"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%8) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %9 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.compare"(%5, %9) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %11 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %12 = "stablehlo.select"(%10, %11, %5) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %14 = "stablehlo.subtract"(%2, %13) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %15 = "stablehlo.exponential"(%14) : (tensor<3xf32>) -> tensor<3xf32>
    %16 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %17 = "stablehlo.reduce"(%15, %16) <{dimensions = array<i64: 0>}> ({ ^bb0(%18: tensor<f32>, %19: tensor<f32>): %20 = "stablehlo.add"(%18, %19) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%20) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %21 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %22 = "stablehlo.compare"(%17, %21) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %23 = "stablehlo.constant"() <{value = dense<1.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %24 = "stablehlo.select"(%22, %23, %17) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
    %25 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<3xf32>
    %26 = "stablehlo.divide"(%15, %25) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %27 = "stablehlo.multiply"(%26, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %28 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %29 = "stablehlo.reduce"(%27, %28) <{dimensions = array<i64: 0>}> ({ ^bb0(%30: tensor<f32>, %31: tensor<f32>): %32 = "stablehlo.add"(%30, %31) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%32) : (tensor<f32>) -> () }) : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%3, %29) : (tensor<3xf32>, tensor<f32>) -> ()
  }
  func.func public @main(%33: tensor<3xf32>, %34: tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %35, %36 = "stablehlo.composite"(%33, %34) <{name = "ctitan.layer", composite_attributes = {k = 3 : i64, name = "x"}, decomposition = @layer}> : (tensor<3xf32>, tensor<3x3xf32>) -> (tensor<3xf32>, tensor<f32>)
    "func.return"(%35, %36) : (tensor<3xf32>, tensor<f32>) -> ()
  }
}
// custom_call, text
module @test {
  func.func public @main(%0: tensor<3xf32>) -> (tensor<3xf32>) {
    %1 = "stablehlo.custom_call"(%0) <{call_target_name = "typed", api_version = 4 : i32, has_side_effect = true, backend_config = {i = 3 : i64, f = 5.00000000e-01 : f32, d = 1.0000000000000001e-01 : f64, b = true, s = "a \22quoted\22 \5C word", l = array<i64: 1, -2>, r = dense<[[0, 1]]> : tensor<1x2xi64>}}> {mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<3xf32>) -> tensor<3xf32>
    %2 = "stablehlo.custom_call"(%0) <{call_target_name = "Sharding", api_version = 1 : i32, has_side_effect = false, backend_config = ""}> : (tensor<3xf32>) -> tensor<3xf32>
    "func.return"(%2) : (tensor<3xf32>) -> ()
  }
}
// manual, all_reduce
module @test {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %1: tensor<3x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %2, %3 = sdy.manual_computation(%0, %1) in_shardings=[<@mesh, [{"a", "c"}, {"b"}]>, <@mesh, [{}, {"b"}]>] out_shardings=[<@mesh, [{"a", "c"}, {}]>, <@mesh, []>] manual_axes={"a", "b", "c"} (%4: tensor<1x2xf32>, %5: tensor<3x2xf32>) {
      %6 = "stablehlo.dot_general"(%4, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<1x3xf32>
      %7 = "stablehlo.all_reduce"(%6) <{replica_groups = dense<[[0, 2], [1, 3], [4, 6], [5, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({ ^bb0(%8: tensor<f32>, %9: tensor<f32>): %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%10) : (tensor<f32>) -> () }) : (tensor<1x3xf32>) -> tensor<1x3xf32>
      %11 = "stablehlo.tanh"(%7) : (tensor<1x3xf32>) -> tensor<1x3xf32>
      %12 = "stablehlo.multiply"(%11, %11) : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
      %13 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %14 = "stablehlo.reduce"(%12, %13) <{dimensions = array<i64: 0, 1>}> ({ ^bb0(%15: tensor<f32>, %16: tensor<f32>): %17 = "stablehlo.add"(%15, %16) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%17) : (tensor<f32>) -> () }) : (tensor<1x3xf32>, tensor<f32>) -> tensor<f32>
      %18 = "stablehlo.all_reduce"(%14) <{replica_groups = dense<[[0, 1, 4, 5], [2, 3, 6, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}> ({ ^bb0(%19: tensor<f32>, %20: tensor<f32>): %21 = "stablehlo.add"(%19, %20) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%21) : (tensor<f32>) -> () }) : (tensor<f32>) -> tensor<f32>
      sdy.return %11, %18 : tensor<1x3xf32>, tensor<f32>
    } : (tensor<4x4xf32>, tensor<3x4xf32>) -> (tensor<4x3xf32>, tensor<f32>)
    "func.return"(%2, %3) : (tensor<4x3xf32>, tensor<f32>) -> ()
  }
}
// manual, all_gather, reduce_scatter
module @test {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%0: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %1: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %2: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %3, %4 = sdy.manual_computation(%0, %1, %2) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{"a", "c"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b", "c"} (%5: tensor<1x3xf32>, %6: tensor<1x3xf32>, %7: tensor<2x4xf32>) {
      %8 = "stablehlo.all_gather"(%6) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<1x3xf32>) -> tensor<2x3xf32>
      %9 = "stablehlo.all_gather"(%8) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}> : (tensor<2x3xf32>) -> tensor<4x3xf32>
      %10 = "stablehlo.dot_general"(%5, %9) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<1x4xf32>
      %11 = "stablehlo.sine"(%10) : (tensor<1x4xf32>) -> tensor<1x4xf32>
      %12 = "stablehlo.all_gather"(%6) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 4, 5], [2, 3, 6, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, use_global_device_ids}> : (tensor<1x3xf32>) -> tensor<4x3xf32>
      %13 = "stablehlo.dot_general"(%5, %12) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<1x4xf32>
      %14 = "stablehlo.add"(%11, %13) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
      %15 = "stablehlo.dot_general"(%11, %7) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<1x2xf32>
      %16 = "stablehlo.reduce_scatter"(%15) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 2], [1, 3], [4, 6], [5, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, use_global_device_ids}> ({ ^bb0(%17: tensor<f32>, %18: tensor<f32>): %19 = "stablehlo.add"(%17, %18) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%19) : (tensor<f32>) -> () }) : (tensor<1x2xf32>) -> tensor<1x1xf32>
      sdy.return %14, %16 : tensor<1x4xf32>, tensor<1x1xf32>
    } : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>)
    "func.return"(%3, %4) : (tensor<2x4xf32>, tensor<2x2xf32>) -> ()
  }
}
// manual, all_to_all
module @test {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %1, %2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a", "b"}, {}]>] out_shardings=[<@mesh, [{"a", "b"}, {}]>, <@mesh, [{}, {"a", "b"}]>] manual_axes={"a", "b", "c"} (%3: tensor<2x4xf32>) {
      %4 = "stablehlo.all_to_all"(%3) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<2x4xf32>) -> tensor<8x1xf32>
      %5 = "stablehlo.multiply"(%4, %4) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
      %6 = "stablehlo.slice"(%5) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 7, 1>, strides = array<i64: 1, 1>}> : (tensor<8x1xf32>) -> tensor<7x1xf32>
      %7 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %8 = "stablehlo.pad"(%6, %7) <{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<7x1xf32>, tensor<f32>) -> tensor<8x1xf32>
      %9 = "stablehlo.add"(%5, %8) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
      %10 = "stablehlo.slice"(%9) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 6, 1>, strides = array<i64: 1, 1>}> : (tensor<8x1xf32>) -> tensor<6x1xf32>
      %11 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %12 = "stablehlo.pad"(%10, %11) <{edge_padding_low = array<i64: 2, 0>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<6x1xf32>, tensor<f32>) -> tensor<8x1xf32>
      %13 = "stablehlo.add"(%9, %12) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
      %14 = "stablehlo.slice"(%13) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 1>, strides = array<i64: 1, 1>}> : (tensor<8x1xf32>) -> tensor<4x1xf32>
      %15 = "stablehlo.constant"() <{value = dense<0.00000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %16 = "stablehlo.pad"(%14, %15) <{edge_padding_low = array<i64: 4, 0>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<4x1xf32>, tensor<f32>) -> tensor<8x1xf32>
      %17 = "stablehlo.add"(%13, %16) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
      %18 = "stablehlo.all_to_all"(%17) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}> : (tensor<8x1xf32>) -> tensor<2x4xf32>
      sdy.return %18, %17 : tensor<2x4xf32>, tensor<8x1xf32>
    } : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    "func.return"(%1, %2) : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
  }
}
// manual, collective_permute, mesh_index
module @test {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %1, %2, %3 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a", "c"}]>] out_shardings=[<@mesh, [{"a", "c"}]>, <@mesh, [{"a", "c"}]>, <@mesh, [{"a", "c"}]>] manual_axes={"a", "b", "c"} (%4: tensor<2xf32>) {
      %5 = "stablehlo.collective_permute"(%4) <{source_target_pairs = dense<[[0, 1], [1, 4], [4, 5], [5, 0], [2, 3], [3, 6], [6, 7], [7, 2]]> : tensor<8x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<2xf32>) -> tensor<2xf32>
      %6 = "stablehlo.multiply"(%4, %5) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %7 = "stablehlo.sine"(%4) : (tensor<2xf32>) -> tensor<2xf32>
      %8 = "stablehlo.collective_permute"(%7) <{source_target_pairs = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}> : (tensor<2xf32>) -> tensor<2xf32>
      %9 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %10 = "stablehlo.constant"() <{value = dense<4> : tensor<ui32>}> : () -> tensor<ui32>
      %11 = "stablehlo.divide"(%9, %10) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %12 = "stablehlo.constant"() <{value = dense<2> : tensor<ui32>}> : () -> tensor<ui32>
      %13 = "stablehlo.remainder"(%11, %12) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %14 = "stablehlo.constant"() <{value = dense<2> : tensor<ui32>}> : () -> tensor<ui32>
      %15 = "stablehlo.multiply"(%13, %14) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %16 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
      %17 = "stablehlo.divide"(%9, %16) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %18 = "stablehlo.constant"() <{value = dense<2> : tensor<ui32>}> : () -> tensor<ui32>
      %19 = "stablehlo.remainder"(%17, %18) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %20 = "stablehlo.add"(%15, %19) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
      %21 = "stablehlo.convert"(%20) : (tensor<ui32>) -> tensor<i32>
      %22 = "stablehlo.convert"(%21) : (tensor<i32>) -> tensor<f32>
      %23 = "stablehlo.broadcast_in_dim"(%22) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2xf32>
      %24 = "stablehlo.multiply"(%4, %23) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      sdy.return %6, %8, %24 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    } : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    "func.return"(%1, %2, %3) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> ()
  }
}
// manual, all_reduce max and min, partition_id
module @test {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %1, %2, %3 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a", "c"}]>] out_shardings=[<@mesh, [{}]>, <@mesh, [{}]>, <@mesh, [{"a", "b", "c"}]>] manual_axes={"a", "b", "c"} (%4: tensor<2xf32>) {
      %5 = "stablehlo.all_reduce"(%4) <{replica_groups = dense<[[0, 1, 4, 5], [2, 3, 6, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({ ^bb0(%6: tensor<f32>, %7: tensor<f32>): %8 = "stablehlo.maximum"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%8) : (tensor<f32>) -> () }) : (tensor<2xf32>) -> tensor<2xf32>
      %9 = "stablehlo.all_reduce"(%4) <{replica_groups = dense<[[0, 1, 4, 5], [2, 3, 6, 7]]> : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}> ({ ^bb0(%10: tensor<f32>, %11: tensor<f32>): %12 = "stablehlo.minimum"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%12) : (tensor<f32>) -> () }) : (tensor<2xf32>) -> tensor<2xf32>
      %13 = "stablehlo.partition_id"() : () -> tensor<ui32>
      %14 = "stablehlo.convert"(%13) : (tensor<ui32>) -> tensor<i32>
      %15 = "stablehlo.reshape"(%14) : (tensor<i32>) -> tensor<1xi32>
      sdy.return %5, %9, %15 : tensor<2xf32>, tensor<2xf32>, tensor<1xi32>
    } : (tensor<8xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<8xi32>)
    "func.return"(%1, %2, %3) : (tensor<2xf32>, tensor<2xf32>, tensor<8xi32>) -> ()
  }
}
