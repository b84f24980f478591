module @gather attributes {mhlo.num_partitions = 128 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d0"=8, "d1"=4, "d2"=4]>
  func.func public @main(%x: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"d0", "d1", "d2"}, {}]>}) -> (tensor<131072x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"d0", "d1", "d2"}, {}]>}) {
    %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d0", "d1", "d2"}, {}]>] out_shardings=[<@mesh, [{"d0", "d1", "d2"}, {}]>] manual_axes={"d0", "d1", "d2"} (%part: tensor<8x1024xbf16>) {
    %v1 = "stablehlo.all_gather"(%part) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127]]> : tensor<1x128xi64>, use_global_device_ids}> : (tensor<8x1024xbf16>) -> tensor<1024x1024xbf16>
    sdy.return %v1 : tensor<1024x1024xbf16>
    } : (tensor<1024x1024xbf16>) -> tensor<131072x1024xbf16>
    return %r : tensor<131072x1024xbf16>
  }
}
