"""kernel times: bf16 / fp8 linear layers of Llama-3.1-8B, FA3 paged decode and prefill, device copy. CUDA-graph replays, weights rotated so that L2 does not hold them."""
import json,sys,time,torch
out=sys.argv[1]; budget=float(sys.argv[2]); T0=time.time(); R=[]
dev='cuda'; torch.manual_seed(0)
def gt(fns,reps=4):
    """median us per call; fns = list of distinct-buffer variants"""
    s=torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for f in fns: f()
    torch.cuda.current_stream().wait_stream(s); torch.cuda.synchronize()
    g=torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for f in fns: f()
    g.replay(); torch.cuda.synchronize(); ts=[]
    for _ in range(reps):
        a=torch.cuda.Event(True); b=torch.cuda.Event(True); a.record(); g.replay(); b.record(); b.synchronize(); ts.append(a.elapsed_time(b)*1e3/len(fns))
    return sorted(ts)[len(ts)//2]
def rec(**k):
    R.append(k)
p=torch.cuda.get_device_properties(0); rec(kind='device',name=p.name,sms=p.multi_processor_count,mem=p.total_memory,l2=p.L2_cache_size,torch=torch.__version__,cuda=torch.version.cuda,cudnn=torch.backends.cudnn.version())
x=torch.empty(1<<30,dtype=torch.uint8,device=dev).random_(); y=torch.empty_like(x)
us=gt([lambda:y.copy_(x)]*4); rec(kind='copy',bytes=2<<30,us=us,GBps=(2<<30)/us/1e3)
us=gt([lambda:torch.sum(x.view(torch.int64))]*4) ; rec(kind='read_sum',bytes=1<<30,us=us,GBps=(1<<30)/us/1e3); del x,y
shapes={'qkv':(4096,6144),'o':(4096,4096),'gate_up':(4096,28672),'down':(14336,4096),'lm_head':(4096,128256)}
Ms=[1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192]
try:
    from vllm import _custom_ops as ops
except Exception as e: ops=None; print('no vllm ops',e)
for n,(K,N) in shapes.items():
    nc=max(2,min(16,-(-300_000_000//(K*N*2))))
    W=[torch.randn(N,K,dtype=torch.bfloat16,device=dev)*0.02 for _ in range(nc)]
    W8=[w.to(torch.float8_e4m3fn) for w in W] if n!='lm_head' else None
    for M in Ms:
        if n=='lm_head' and M>1024: continue
        if time.time()-T0>budget: break
        X=[torch.randn(M,K,dtype=torch.bfloat16,device=dev) for _ in range(2)]
        it=[(X[i%2],W[i]) for i in range(nc)]
        us=gt([(lambda a=a,w=w: torch.nn.functional.linear(a,w)) for a,w in it])
        rec(kind='gemm',dtype='bf16',layer=n,M=M,K=K,N=N,us=us,TFLOPs=2*M*K*N/us/1e6,wGBps=2*K*N/us/1e3)
        if W8:
            X8=[t.to(torch.float8_e4m3fn) for t in X]; sa=torch.rand(M,1,device=dev)+.5; sb=torch.rand(N,1,device=dev)+.5
            if ops:
                try:
                    us=gt([(lambda a=X8[i%2],w=W8[i]: ops.cutlass_scaled_mm(a,w.t(),sa,sb,torch.bfloat16)) for i in range(nc)])
                    rec(kind='gemm',dtype='fp8_vllm_cutlass_rowwise',layer=n,M=M,K=K,N=N,us=us,TFLOPs=2*M*K*N/us/1e6,wGBps=K*N/us/1e3)
                except Exception as e: rec(kind='err',what=f'cutlass {n} {M}',e=str(e)[:200])
            if M>=16:
                try:
                    s1=torch.tensor(1.,device=dev)
                    us=gt([(lambda a=X8[i%2],w=W8[i]: torch._scaled_mm(a,w.t(),scale_a=s1,scale_b=s1,out_dtype=torch.bfloat16)) for i in range(nc)])
                    rec(kind='gemm',dtype='fp8_cublaslt_tensorwise',layer=n,M=M,K=K,N=N,us=us,TFLOPs=2*M*K*N/us/1e6,wGBps=K*N/us/1e3)
                except Exception as e: rec(kind='err',what=f'scaled_mm {n} {M}',e=str(e)[:200])
    del W,W8; torch.cuda.empty_cache()
try:
    from vllm.vllm_flash_attn import flash_attn_varlen_func as fa
    H,KH,D,BS=32,8,128,16
    tot=1_000_000//BS
    kc=torch.randn(tot,BS,KH,D,dtype=torch.bfloat16,device=dev); vc=torch.randn_like(kc)
    for B in (1,4,8,16,32,64,128,256):
        for C in (256,1024,2048,4096,8192,16384):
            if B*C>1_000_000 or time.time()-T0>budget: continue
            nb=C//BS; perm=torch.randperm(tot,device=dev)[:B*nb].int().view(B,nb) if B*nb<=tot else None
            if perm is None: continue
            q=torch.randn(B,H,D,dtype=torch.bfloat16,device=dev); cu=torch.arange(B+1,dtype=torch.int32,device=dev); sk=torch.full((B,),C,dtype=torch.int32,device=dev)
            f=lambda: fa(q=q,k=kc,v=vc,max_seqlen_q=1,cu_seqlens_q=cu,max_seqlen_k=C,seqused_k=sk,softmax_scale=D**-.5,causal=True,block_table=perm,fa_version=3)
            us=gt([f]*4); rec(kind='attn_decode_fa3',B=B,ctx=C,us=us,GBps=B*C*KH*D*2*2/us/1e3)
    for S in (128,512,1024,2048,4096,8192):
        nb=S//BS; bt=torch.randperm(tot,device=dev)[:nb].int().view(1,nb); q=torch.randn(S,H,D,dtype=torch.bfloat16,device=dev)
        cu=torch.tensor([0,S],dtype=torch.int32,device=dev); sk=torch.tensor([S],dtype=torch.int32,device=dev)
        f=lambda: fa(q=q,k=kc,v=vc,max_seqlen_q=S,cu_seqlens_q=cu,max_seqlen_k=S,seqused_k=sk,softmax_scale=D**-.5,causal=True,block_table=bt,fa_version=3)
        us=gt([f]*4); rec(kind='attn_prefill_fa3',S=S,us=us,TFLOPs_causal=2*2*S*S/2*H*D/us/1e6)
except Exception as e:
    import traceback; traceback.print_exc(); rec(kind='err',what='attn',e=str(e)[:300])
rec(kind='elapsed',s=time.time()-T0); json.dump(R,open(out,'w'))
for r in R:
    if r['kind'] in('device','copy','read_sum','err','elapsed') or (r.get('layer')=='gate_up' and r['M'] in(1,64,512,8192)) or (r['kind'].startswith('attn') and r.get('ctx',r.get('S'))==1024): print({k:(round(v,1) if isinstance(v,float) else v) for k,v in r.items()})
