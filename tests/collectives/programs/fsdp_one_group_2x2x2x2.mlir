module @fsdp attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d0"=2, "d1"=2, "d2"=2, "d3"=2]>
  func.func public @main(%gx: tensor<6144x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"d0", "d1", "d2", "d3"}, {}]>}, %gw1: tensor<2x2048x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>, tf.aliasing_output = 0 : i32}, %gw2: tensor<2x1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>, tf.aliasing_output = 1 : i32}) -> (tensor<2x2048x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>}, tensor<2x1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>}) {
    %r:2 = sdy.manual_computation(%gx, %gw1, %gw2) in_shardings=[<@mesh, [{"d0", "d1", "d2", "d3"}, {}]>, <@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>, <@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>] out_shardings=[<@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>, <@mesh, [{}, {"d0", "d1", "d2", "d3"}, {}]>] manual_axes={"d0", "d1", "d2", "d3"} (%x: tensor<384x1024xbf16>, %w1: tensor<2x128x1024xf32>, %w2: tensor<2x64x2048xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %num = stablehlo.constant dense<2> : tensor<i32>
    %last = stablehlo.constant dense<1> : tensor<i32>
    %v1 = stablehlo.constant dense<0.0> : tensor<2x384x1024xbf16>
    %f:5 = stablehlo.while(%fi = %zero, %fx = %x, %fw1 = %w1, %fw2 = %w2, %fs = %v1) : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16>
    cond { %c = stablehlo.compare LT, %fi, %num, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1> } do {
    %v2 = stablehlo.dynamic_slice %fw1, %fi, %zero, %zero, sizes = [1, 128, 1024] : (tensor<2x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x1024xf32>
    %v3 = stablehlo.reshape %v2 : (tensor<1x128x1024xf32>) -> tensor<128x1024xf32>
    %v4 = stablehlo.convert %v3 : (tensor<128x1024xf32>) -> tensor<128x1024xbf16>
    %v5 = "stablehlo.all_gather"(%v4) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> : (tensor<128x1024xbf16>) -> tensor<2048x1024xbf16>
    %v6 = stablehlo.dynamic_slice %fw2, %fi, %zero, %zero, sizes = [1, 64, 2048] : (tensor<2x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xf32>
    %v7 = stablehlo.reshape %v6 : (tensor<1x64x2048xf32>) -> tensor<64x2048xf32>
    %v8 = stablehlo.convert %v7 : (tensor<64x2048xf32>) -> tensor<64x2048xbf16>
    %v9 = "stablehlo.all_gather"(%v8) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> : (tensor<64x2048xbf16>) -> tensor<1024x2048xbf16>
    %v10 = stablehlo.dot_general %fx, %v5, contracting_dims = [1] x [1] : (tensor<384x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<384x2048xbf16>
    %v11 = stablehlo.tanh %v10 : tensor<384x2048xbf16>
    %v12 = stablehlo.dot_general %v11, %v9, contracting_dims = [1] x [1] : (tensor<384x2048xbf16>, tensor<1024x2048xbf16>) -> tensor<384x1024xbf16>
    %v13 = stablehlo.add %fx, %v12 : tensor<384x1024xbf16>
    %v14 = stablehlo.reshape %fx : (tensor<384x1024xbf16>) -> tensor<1x384x1024xbf16>
    %v15 = stablehlo.dynamic_update_slice %fs, %v14, %fi, %zero, %zero : (tensor<2x384x1024xbf16>, tensor<1x384x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x384x1024xbf16>
    %v16 = stablehlo.add %fi, %one : tensor<i32>
    stablehlo.return %v16, %v13, %fw1, %fw2, %v15 : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16> }
    %v17 = stablehlo.constant dense<0.0> : tensor<2x128x1024xf32>
    %v18 = stablehlo.constant dense<0.0> : tensor<2x64x2048xf32>
    %b:7 = stablehlo.while(%bi = %zero, %bd = %f#1, %bw1 = %w1, %bw2 = %w2, %bs = %f#4, %bg1 = %v17, %bg2 = %v18) : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>
    cond { %c = stablehlo.compare LT, %bi, %num, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1> } do {
    %v19 = stablehlo.subtract %last, %bi : tensor<i32>
    %v20 = stablehlo.dynamic_slice %bs, %v19, %zero, %zero, sizes = [1, 384, 1024] : (tensor<2x384x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x384x1024xbf16>
    %v21 = stablehlo.reshape %v20 : (tensor<1x384x1024xbf16>) -> tensor<384x1024xbf16>
    %bar:2 = stablehlo.optimization_barrier %bd, %v21 : tensor<384x1024xbf16>, tensor<384x1024xbf16>
    %v22 = stablehlo.dynamic_slice %bw1, %v19, %zero, %zero, sizes = [1, 128, 1024] : (tensor<2x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x1024xf32>
    %v23 = stablehlo.reshape %v22 : (tensor<1x128x1024xf32>) -> tensor<128x1024xf32>
    %v24 = stablehlo.convert %v23 : (tensor<128x1024xf32>) -> tensor<128x1024xbf16>
    %v25 = "stablehlo.all_gather"(%v24) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> : (tensor<128x1024xbf16>) -> tensor<2048x1024xbf16>
    %v26 = stablehlo.dynamic_slice %bw2, %v19, %zero, %zero, sizes = [1, 64, 2048] : (tensor<2x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xf32>
    %v27 = stablehlo.reshape %v26 : (tensor<1x64x2048xf32>) -> tensor<64x2048xf32>
    %v28 = stablehlo.convert %v27 : (tensor<64x2048xf32>) -> tensor<64x2048xbf16>
    %v29 = "stablehlo.all_gather"(%v28) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> : (tensor<64x2048xbf16>) -> tensor<1024x2048xbf16>
    %v30 = stablehlo.dot_general %bar#1, %v25, contracting_dims = [1] x [1] : (tensor<384x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<384x2048xbf16>
    %v31 = stablehlo.tanh %v30 : tensor<384x2048xbf16>
    %v32 = stablehlo.dot_general %v31, %v29, contracting_dims = [1] x [1] : (tensor<384x2048xbf16>, tensor<1024x2048xbf16>) -> tensor<384x1024xbf16>
    %v33 = stablehlo.add %bar#1, %v32 : tensor<384x1024xbf16>
    %v34 = stablehlo.constant dense<1.0> : tensor<384x2048xbf16>
    %v35 = stablehlo.multiply %v31, %v31 : tensor<384x2048xbf16>
    %v36 = stablehlo.subtract %v34, %v35 : tensor<384x2048xbf16>
    %v37 = stablehlo.dot_general %bar#0, %v29, contracting_dims = [1] x [0] : (tensor<384x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<384x2048xbf16>
    %v38 = stablehlo.multiply %v37, %v36 : tensor<384x2048xbf16>
    %v39 = stablehlo.dot_general %v38, %bar#1, contracting_dims = [0] x [0] : (tensor<384x2048xbf16>, tensor<384x1024xbf16>) -> tensor<2048x1024xbf16>
    %v40 = stablehlo.dot_general %bar#0, %v31, contracting_dims = [0] x [0] : (tensor<384x1024xbf16>, tensor<384x2048xbf16>) -> tensor<1024x2048xbf16>
    %v41 = stablehlo.dot_general %v38, %v25, contracting_dims = [1] x [0] : (tensor<384x2048xbf16>, tensor<2048x1024xbf16>) -> tensor<384x1024xbf16>
    %v42 = stablehlo.add %v41, %bar#0 : tensor<384x1024xbf16>
    %v43 = "stablehlo.reduce_scatter"(%v39) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<2048x1024xbf16>) -> tensor<128x1024xbf16>
    %v44 = stablehlo.convert %v43 : (tensor<128x1024xbf16>) -> tensor<128x1024xf32>
    %v45 = "stablehlo.reduce_scatter"(%v40) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<1024x2048xbf16>) -> tensor<64x2048xbf16>
    %v46 = stablehlo.convert %v45 : (tensor<64x2048xbf16>) -> tensor<64x2048xf32>
    %v47 = stablehlo.reshape %v44 : (tensor<128x1024xf32>) -> tensor<1x128x1024xf32>
    %v48 = stablehlo.dynamic_update_slice %bg1, %v47, %v19, %zero, %zero : (tensor<2x128x1024xf32>, tensor<1x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x128x1024xf32>
    %v49 = stablehlo.reshape %v46 : (tensor<64x2048xf32>) -> tensor<1x64x2048xf32>
    %v50 = stablehlo.dynamic_update_slice %bg2, %v49, %v19, %zero, %zero : (tensor<2x64x2048xf32>, tensor<1x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x2048xf32>
    %v51 = stablehlo.add %bi, %one : tensor<i32>
    stablehlo.return %v51, %v42, %bw1, %bw2, %bs, %v48, %v50 : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32> }
    %o1 = stablehlo.subtract %w1, %b#5 : tensor<2x128x1024xf32>
    %o2 = stablehlo.subtract %w2, %b#6 : tensor<2x64x2048xf32>
    sdy.return %o1, %o2 : tensor<2x128x1024xf32>, tensor<2x64x2048xf32>
    } : (tensor<6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>) -> (tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>)
    return %r#0, %r#1 : tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>
  }
}
