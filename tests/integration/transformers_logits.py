"""Logits of a Hugging Face folder as transformers computes them in float32, for convert_test.

    python3 transformers_logits.py FOLDER TOKENS OUTPUT     safetensors; inputs are tokens[:, :-1]
"""
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

folder, tokens_path, output = sys.argv[1:]
tokens = load_file(tokens_path)["tokens"].long()
dtype = AutoConfig.from_pretrained(folder).dtype
assert dtype == torch.float32, f"config.json must say float32, as the weights are, but says {dtype}"
model, report = AutoModelForCausalLM.from_pretrained(
    folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
)
problems = {kind: names for kind, names in report.items() if names}
assert not problems, f"tensors that do not fit: {problems}"
with torch.no_grad():
    logits = model.eval()(input_ids=tokens[:, :-1], use_cache=False).logits
save_file({"logits": logits.float().contiguous()}, output)
