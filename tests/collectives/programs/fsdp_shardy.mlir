module @fsdp attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d0"=4, "d1"=4]>
  func.func public @main(%x: tensor<6144x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"d0", "d1"}, {}]>}, %w1: tensor<2x2048x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>, tf.aliasing_output = 0 : i32}, %w2: tensor<2x1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>, tf.aliasing_output = 1 : i32}) -> (tensor<2x2048x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>}, tensor<2x1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %num = stablehlo.constant dense<2> : tensor<i32>
    %last = stablehlo.constant dense<1> : tensor<i32>
    %v1 = stablehlo.constant dense<0.0> : tensor<2x6144x1024xbf16>
    %f:5 = stablehlo.while(%fi = %zero, %fx = %x, %fw1 = %w1, %fw2 = %w2, %fs = %v1) : tensor<i32>, tensor<6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>, tensor<2x6144x1024xbf16>
    cond { %c = stablehlo.compare LT, %fi, %num, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1> } do {
    %v2 = stablehlo.dynamic_slice %fw1, %fi, %zero, %zero, sizes = [1, 2048, 1024] : (tensor<2x2048x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2048x1024xf32>
    %v3 = stablehlo.reshape %v2 : (tensor<1x2048x1024xf32>) -> tensor<2048x1024xf32>
    %v4 = stablehlo.convert %v3 : (tensor<2048x1024xf32>) -> tensor<2048x1024xbf16>
    %v5 = sdy.sharding_constraint %v4 <@mesh, [{}, {}]> : tensor<2048x1024xbf16>
    %v6 = stablehlo.dynamic_slice %fw2, %fi, %zero, %zero, sizes = [1, 1024, 2048] : (tensor<2x1024x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x2048xf32>
    %v7 = stablehlo.reshape %v6 : (tensor<1x1024x2048xf32>) -> tensor<1024x2048xf32>
    %v8 = stablehlo.convert %v7 : (tensor<1024x2048xf32>) -> tensor<1024x2048xbf16>
    %v9 = sdy.sharding_constraint %v8 <@mesh, [{}, {}]> : tensor<1024x2048xbf16>
    %v10 = stablehlo.dot_general %fx, %v5, contracting_dims = [1] x [1] : (tensor<6144x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<6144x2048xbf16>
    %v11 = stablehlo.tanh %v10 : tensor<6144x2048xbf16>
    %v12 = stablehlo.dot_general %v11, %v9, contracting_dims = [1] x [1] : (tensor<6144x2048xbf16>, tensor<1024x2048xbf16>) -> tensor<6144x1024xbf16>
    %v13 = stablehlo.add %fx, %v12 : tensor<6144x1024xbf16>
    %v14 = stablehlo.reshape %fx : (tensor<6144x1024xbf16>) -> tensor<1x6144x1024xbf16>
    %v15 = stablehlo.dynamic_update_slice %fs, %v14, %fi, %zero, %zero : (tensor<2x6144x1024xbf16>, tensor<1x6144x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x6144x1024xbf16>
    %v16 = stablehlo.add %fi, %one : tensor<i32>
    stablehlo.return %v16, %v13, %fw1, %fw2, %v15 : tensor<i32>, tensor<6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>, tensor<2x6144x1024xbf16> }
    %v17 = stablehlo.constant dense<0.0> : tensor<2x2048x1024xf32>
    %v18 = stablehlo.constant dense<0.0> : tensor<2x1024x2048xf32>
    %b:7 = stablehlo.while(%bi = %zero, %bd = %f#1, %bw1 = %w1, %bw2 = %w2, %bs = %f#4, %bg1 = %v17, %bg2 = %v18) : tensor<i32>, tensor<6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>, tensor<2x6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>
    cond { %c = stablehlo.compare LT, %bi, %num, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1> } do {
    %v19 = stablehlo.subtract %last, %bi : tensor<i32>
    %v20 = stablehlo.dynamic_slice %bs, %v19, %zero, %zero, sizes = [1, 6144, 1024] : (tensor<2x6144x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x6144x1024xbf16>
    %v21 = stablehlo.reshape %v20 : (tensor<1x6144x1024xbf16>) -> tensor<6144x1024xbf16>
    %bar:2 = stablehlo.optimization_barrier %bd, %v21 : tensor<6144x1024xbf16>, tensor<6144x1024xbf16>
    %v22 = stablehlo.dynamic_slice %bw1, %v19, %zero, %zero, sizes = [1, 2048, 1024] : (tensor<2x2048x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2048x1024xf32>
    %v23 = stablehlo.reshape %v22 : (tensor<1x2048x1024xf32>) -> tensor<2048x1024xf32>
    %v24 = stablehlo.convert %v23 : (tensor<2048x1024xf32>) -> tensor<2048x1024xbf16>
    %v25 = sdy.sharding_constraint %v24 <@mesh, [{}, {}]> : tensor<2048x1024xbf16>
    %v26 = stablehlo.dynamic_slice %bw2, %v19, %zero, %zero, sizes = [1, 1024, 2048] : (tensor<2x1024x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x2048xf32>
    %v27 = stablehlo.reshape %v26 : (tensor<1x1024x2048xf32>) -> tensor<1024x2048xf32>
    %v28 = stablehlo.convert %v27 : (tensor<1024x2048xf32>) -> tensor<1024x2048xbf16>
    %v29 = sdy.sharding_constraint %v28 <@mesh, [{}, {}]> : tensor<1024x2048xbf16>
    %v30 = stablehlo.dot_general %bar#1, %v25, contracting_dims = [1] x [1] : (tensor<6144x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<6144x2048xbf16>
    %v31 = stablehlo.tanh %v30 : tensor<6144x2048xbf16>
    %v32 = stablehlo.dot_general %v31, %v29, contracting_dims = [1] x [1] : (tensor<6144x2048xbf16>, tensor<1024x2048xbf16>) -> tensor<6144x1024xbf16>
    %v33 = stablehlo.add %bar#1, %v32 : tensor<6144x1024xbf16>
    %v34 = stablehlo.constant dense<1.0> : tensor<6144x2048xbf16>
    %v35 = stablehlo.multiply %v31, %v31 : tensor<6144x2048xbf16>
    %v36 = stablehlo.subtract %v34, %v35 : tensor<6144x2048xbf16>
    %v37 = stablehlo.dot_general %bar#0, %v29, contracting_dims = [1] x [0] : (tensor<6144x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<6144x2048xbf16>
    %v38 = stablehlo.multiply %v37, %v36 : tensor<6144x2048xbf16>
    %v39 = stablehlo.dot_general %v38, %bar#1, contracting_dims = [0] x [0] : (tensor<6144x2048xbf16>, tensor<6144x1024xbf16>) -> tensor<2048x1024xbf16>
    %v40 = stablehlo.dot_general %bar#0, %v31, contracting_dims = [0] x [0] : (tensor<6144x1024xbf16>, tensor<6144x2048xbf16>) -> tensor<1024x2048xbf16>
    %v41 = stablehlo.dot_general %v38, %v25, contracting_dims = [1] x [0] : (tensor<6144x2048xbf16>, tensor<2048x1024xbf16>) -> tensor<6144x1024xbf16>
    %v42 = stablehlo.add %v41, %bar#0 : tensor<6144x1024xbf16>
    %v43 = sdy.sharding_constraint %v39 <@mesh, [{"d0", "d1"}, {}]> : tensor<2048x1024xbf16>
    %v44 = stablehlo.convert %v43 : (tensor<2048x1024xbf16>) -> tensor<2048x1024xf32>
    %v45 = sdy.sharding_constraint %v40 <@mesh, [{"d0", "d1"}, {}]> : tensor<1024x2048xbf16>
    %v46 = stablehlo.convert %v45 : (tensor<1024x2048xbf16>) -> tensor<1024x2048xf32>
    %v47 = stablehlo.reshape %v44 : (tensor<2048x1024xf32>) -> tensor<1x2048x1024xf32>
    %v48 = stablehlo.dynamic_update_slice %bg1, %v47, %v19, %zero, %zero : (tensor<2x2048x1024xf32>, tensor<1x2048x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x2048x1024xf32>
    %v49 = stablehlo.reshape %v46 : (tensor<1024x2048xf32>) -> tensor<1x1024x2048xf32>
    %v50 = stablehlo.dynamic_update_slice %bg2, %v49, %v19, %zero, %zero : (tensor<2x1024x2048xf32>, tensor<1x1024x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x1024x2048xf32>
    %v51 = stablehlo.add %bi, %one : tensor<i32>
    stablehlo.return %v51, %v42, %bw1, %bw2, %bs, %v48, %v50 : tensor<i32>, tensor<6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>, tensor<2x6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32> }
    %o1 = stablehlo.subtract %w1, %b#5 : tensor<2x2048x1024xf32>
    %o2 = stablehlo.subtract %w2, %b#6 : tensor<2x1024x2048xf32>
    return %o1, %o2 : tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>
  }
}
