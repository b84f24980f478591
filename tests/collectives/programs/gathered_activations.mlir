module @fsdp attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d0"=4, "d1"=4]>
  func.func public @main(%gx: tensor<6144x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"d0", "d1"}, {}]>}, %gw1: tensor<2x2048x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>, tf.aliasing_output = 0 : i32}, %gw2: tensor<2x1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>, tf.aliasing_output = 1 : i32}) -> (tensor<2x2048x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>}, tensor<2x1024x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"d0", "d1"}, {}]>}) {
    %r:2 = sdy.manual_computation(%gx, %gw1, %gw2) in_shardings=[<@mesh, [{"d0", "d1"}, {}]>, <@mesh, [{}, {"d0", "d1"}, {}]>, <@mesh, [{}, {"d0", "d1"}, {}]>] out_shardings=[<@mesh, [{}, {"d0", "d1"}, {}]>, <@mesh, [{}, {"d0", "d1"}, {}]>] manual_axes={"d0", "d1"} (%x: tensor<384x1024xbf16>, %w1: tensor<2x128x1024xf32>, %w2: tensor<2x64x2048xf32>) {
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
    %v5 = "stablehlo.all_gather"(%v4) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<128x1024xbf16>) -> tensor<512x1024xbf16>
    %v6 = "stablehlo.all_gather"(%v5) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<512x1024xbf16>) -> tensor<2048x1024xbf16>
    %v7 = stablehlo.dynamic_slice %fw2, %fi, %zero, %zero, sizes = [1, 64, 2048] : (tensor<2x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xf32>
    %v8 = stablehlo.reshape %v7 : (tensor<1x64x2048xf32>) -> tensor<64x2048xf32>
    %v9 = stablehlo.convert %v8 : (tensor<64x2048xf32>) -> tensor<64x2048xbf16>
    %v10 = "stablehlo.all_gather"(%v9) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<64x2048xbf16>) -> tensor<256x2048xbf16>
    %v11 = "stablehlo.all_gather"(%v10) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<256x2048xbf16>) -> tensor<1024x2048xbf16>
    %v12 = stablehlo.dot_general %fx, %v6, contracting_dims = [1] x [1] : (tensor<384x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<384x2048xbf16>
    %v13 = stablehlo.tanh %v12 : tensor<384x2048xbf16>
    %v14 = stablehlo.dot_general %v13, %v11, contracting_dims = [1] x [1] : (tensor<384x2048xbf16>, tensor<1024x2048xbf16>) -> tensor<384x1024xbf16>
    %v15 = stablehlo.add %fx, %v14 : tensor<384x1024xbf16>
    %v16 = stablehlo.reshape %fx : (tensor<384x1024xbf16>) -> tensor<1x384x1024xbf16>
    %v17 = stablehlo.dynamic_update_slice %fs, %v16, %fi, %zero, %zero : (tensor<2x384x1024xbf16>, tensor<1x384x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x384x1024xbf16>
    %v18 = stablehlo.add %fi, %one : tensor<i32>
    stablehlo.return %v18, %v15, %fw1, %fw2, %v17 : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16> }
    %v19 = stablehlo.constant dense<0.0> : tensor<2x128x1024xf32>
    %v20 = stablehlo.constant dense<0.0> : tensor<2x64x2048xf32>
    %b:7 = stablehlo.while(%bi = %zero, %bd = %f#1, %bw1 = %w1, %bw2 = %w2, %bs = %f#4, %bg1 = %v19, %bg2 = %v20) : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>
    cond { %c = stablehlo.compare LT, %bi, %num, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1> } do {
    %v21 = stablehlo.subtract %last, %bi : tensor<i32>
    %v22 = stablehlo.dynamic_slice %bs, %v21, %zero, %zero, sizes = [1, 384, 1024] : (tensor<2x384x1024xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x384x1024xbf16>
    %v23 = stablehlo.reshape %v22 : (tensor<1x384x1024xbf16>) -> tensor<384x1024xbf16>
    %bar:2 = stablehlo.optimization_barrier %bd, %v23 : tensor<384x1024xbf16>, tensor<384x1024xbf16>
    %v24 = stablehlo.dynamic_slice %bw1, %v21, %zero, %zero, sizes = [1, 128, 1024] : (tensor<2x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x1024xf32>
    %v25 = stablehlo.reshape %v24 : (tensor<1x128x1024xf32>) -> tensor<128x1024xf32>
    %v26 = stablehlo.convert %v25 : (tensor<128x1024xf32>) -> tensor<128x1024xbf16>
    %v27 = "stablehlo.all_gather"(%v26) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<128x1024xbf16>) -> tensor<512x1024xbf16>
    %v28 = "stablehlo.all_gather"(%v27) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 6, type = 1>, replica_groups = dense<[[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<512x1024xbf16>) -> tensor<2048x1024xbf16>
    %v29 = stablehlo.dynamic_slice %bw2, %v21, %zero, %zero, sizes = [1, 64, 2048] : (tensor<2x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xf32>
    %v30 = stablehlo.reshape %v29 : (tensor<1x64x2048xf32>) -> tensor<64x2048xf32>
    %v31 = stablehlo.convert %v30 : (tensor<64x2048xf32>) -> tensor<64x2048xbf16>
    %v32 = "stablehlo.all_gather"(%v31) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<64x2048xbf16>) -> tensor<256x2048xbf16>
    %v33 = "stablehlo.all_gather"(%v32) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 8, type = 1>, replica_groups = dense<[[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]> : tensor<4x4xi64>, use_global_device_ids}> : (tensor<256x2048xbf16>) -> tensor<1024x2048xbf16>
    %v34 = stablehlo.dot_general %bar#1, %v28, contracting_dims = [1] x [1] : (tensor<384x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<384x2048xbf16>
    %v35 = stablehlo.tanh %v34 : tensor<384x2048xbf16>
    %v36 = stablehlo.dot_general %v35, %v33, contracting_dims = [1] x [1] : (tensor<384x2048xbf16>, tensor<1024x2048xbf16>) -> tensor<384x1024xbf16>
    %v37 = stablehlo.add %bar#1, %v36 : tensor<384x1024xbf16>
    %v38 = stablehlo.constant dense<1.0> : tensor<384x2048xbf16>
    %v39 = stablehlo.multiply %v35, %v35 : tensor<384x2048xbf16>
    %v40 = stablehlo.subtract %v38, %v39 : tensor<384x2048xbf16>
    %v41 = stablehlo.dot_general %bar#0, %v33, contracting_dims = [1] x [0] : (tensor<384x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<384x2048xbf16>
    %v42 = stablehlo.multiply %v41, %v40 : tensor<384x2048xbf16>
    %v43 = stablehlo.dot_general %v42, %bar#1, contracting_dims = [0] x [0] : (tensor<384x2048xbf16>, tensor<384x1024xbf16>) -> tensor<2048x1024xbf16>
    %v44 = stablehlo.dot_general %bar#0, %v35, contracting_dims = [0] x [0] : (tensor<384x1024xbf16>, tensor<384x2048xbf16>) -> tensor<1024x2048xbf16>
    %v45 = stablehlo.dot_general %v42, %v28, contracting_dims = [1] x [0] : (tensor<384x2048xbf16>, tensor<2048x1024xbf16>) -> tensor<384x1024xbf16>
    %v46 = stablehlo.add %v45, %bar#0 : tensor<384x1024xbf16>
    %v47 = "stablehlo.all_gather"(%v46) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 9, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> : (tensor<384x1024xbf16>) -> tensor<6144x1024xbf16>
    %v48 = stablehlo.slice %v47 [0:384, 0:1024] : (tensor<6144x1024xbf16>) -> tensor<384x1024xbf16>
    %v49 = "stablehlo.reduce_scatter"(%v43) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 10, type = 1>, replica_groups = dense<[[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]> : tensor<4x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<2048x1024xbf16>) -> tensor<512x1024xbf16>
    %v50 = "stablehlo.reduce_scatter"(%v49) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 11, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<512x1024xbf16>) -> tensor<128x1024xbf16>
    %v51 = stablehlo.convert %v50 : (tensor<128x1024xbf16>) -> tensor<128x1024xf32>
    %v52 = "stablehlo.reduce_scatter"(%v44) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 12, type = 1>, replica_groups = dense<[[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]> : tensor<4x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<1024x2048xbf16>) -> tensor<256x2048xbf16>
    %v53 = "stablehlo.reduce_scatter"(%v52) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 13, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<256x2048xbf16>) -> tensor<64x2048xbf16>
    %v54 = stablehlo.convert %v53 : (tensor<64x2048xbf16>) -> tensor<64x2048xf32>
    %v55 = stablehlo.reshape %v51 : (tensor<128x1024xf32>) -> tensor<1x128x1024xf32>
    %v56 = stablehlo.dynamic_update_slice %bg1, %v55, %v21, %zero, %zero : (tensor<2x128x1024xf32>, tensor<1x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x128x1024xf32>
    %v57 = stablehlo.reshape %v54 : (tensor<64x2048xf32>) -> tensor<1x64x2048xf32>
    %v58 = stablehlo.dynamic_update_slice %bg2, %v57, %v21, %zero, %zero : (tensor<2x64x2048xf32>, tensor<1x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x2048xf32>
    %v59 = stablehlo.add %bi, %one : tensor<i32>
    stablehlo.return %v59, %v48, %bw1, %bw2, %bs, %v56, %v58 : tensor<i32>, tensor<384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32>, tensor<2x384x1024xbf16>, tensor<2x128x1024xf32>, tensor<2x64x2048xf32> }
    %o1 = stablehlo.subtract %w1, %b#5 : tensor<2x128x1024xf32>
    %o2 = stablehlo.subtract %w2, %b#6 : tensor<2x64x2048xf32>
    sdy.return %o1, %o2 : tensor<2x128x1024xf32>, tensor<2x64x2048xf32>
    } : (tensor<6144x1024xbf16>, tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>) -> (tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>)
    return %r#0, %r#1 : tensor<2x2048x1024xf32>, tensor<2x1024x2048xf32>
  }
}
