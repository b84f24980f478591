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
    %3 = "stablehlo.constant"() <{value = dense<23> : tensor<ui32>}> : () -> tensor<ui32>
    %4 = "stablehlo.abs"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %5 = "stablehlo.bitcast_convert"(%4) : (tensor<3x4xf32>) -> tensor<3x4xui32>
    %6 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x4xui32>
    %7 = "stablehlo.shift_right_logical"(%5, %6) : (tensor<3x4xui32>, tensor<3x4xui32>) -> tensor<3x4xui32>
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
