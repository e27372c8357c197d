"""HTTP load generator. Streams /v1/completions with token-id prompts; records the arrival time of every chunk."""
import asyncio, json, random, re, sys, time, lzma, os
import aiohttp
try:
    import uvloop; asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
except ImportError: pass
URL=os.environ.get('URL','http://127.0.0.1:8000'); MODEL=os.environ.get('MODEL','m')
RX=re.compile(rb'"completion_tokens":\s*(\d+)')
mono=time.monotonic
def body(rng,isl,osl):
    return json.dumps({"model":MODEL,"prompt":[rng.randrange(0,127999) for _ in range(isl)],"max_tokens":osl,"min_tokens":osl,"ignore_eos":True,"temperature":0,
      "stream":True,"stream_options":{"include_usage":True,"continuous_usage_stats":True}}).encode()
async def one(s,b):
    ch=[]; t_send=mono()
    async with s.post(URL+'/v1/completions',data=b,headers={'Content-Type':'application/json'}) as r:
        if r.status!=200: raise RuntimeError(f'{r.status} {await r.text()}')
        async for d in r.content.iter_any(): ch.append((mono(),d))
    return t_send,ch
def digest(phase,i,isl,osl,t0,t_arr,t_send,ch):
    # tokens known to be received after each network read
    buf=b''; ts=[]; ns=[]; seen=0
    for t,d in ch:
        buf+=d; cut=buf.rfind(b'\n\n')
        if cut<0: continue
        m=[int(x) for x in RX.findall(buf[:cut])]; buf=buf[cut:]
        if m and max(m)>seen: ts.append(t); ns.append(max(m)-seen); seen=max(m)
    r={"ph":phase,"i":i,"isl":isl,"osl":osl,"arr":round(t_arr-t0,6),"send":round(t_send-t0,6),"n":seen,"end":round(ch[-1][0]-t0,6)}
    if ts:
        r["first"]=round(ts[0]-t0,6)
        q=[round((t-ts[0])*1e5) for t in ts]; r["d10us"]=[b-a for a,b in zip(q,q[1:])]   # gaps between reads, 10 us units
        if any(x!=1 for x in ns): r["ntok"]=ns
    return r
def pct(a,p):
    a=sorted(a); 
    if not a: return float('nan')
    k=(len(a)-1)*p; f=int(k); c=min(f+1,len(a)-1); return a[f]+(a[c]-a[f])*(k-f)
def summary(phase,rs,wall):
    ttft=[(r['first']-r['arr'])*1e3 for r in rs]; tpot=[((r['end_tok']-r['first'])/(r['n']-1))*1e3 for r in rs if r['n']>1]
    itl=[d/100 for r in rs for d in r.get('d10us',[])]
    e2e=[(r['end_tok']-r['arr'])*1e3 for r in rs]
    o=sum(r['n'] for r in rs)
    return {"phase":phase,"n":len(rs),"wall_s":round(wall,3),"req_s":round(len(rs)/wall,3),"out_tok_s":round(o/wall,1),"in_tok_s":round(sum(r['isl'] for r in rs)/wall,1),
      "ttft_ms":{k:round(v,2) for k,v in dict(mean=sum(ttft)/len(ttft),p50=pct(ttft,.5),p90=pct(ttft,.9),p99=pct(ttft,.99)).items()},
      "tpot_ms":{k:round(v,3) for k,v in dict(mean=sum(tpot)/max(1,len(tpot)),p50=pct(tpot,.5),p90=pct(tpot,.9),p99=pct(tpot,.99)).items()},
      "itl_ms":{k:round(v,3) for k,v in dict(mean=sum(itl)/max(1,len(itl)),p50=pct(itl,.5),p90=pct(itl,.9),p99=pct(itl,.99)).items()},
      "e2e_ms":{k:round(v,1) for k,v in dict(mean=sum(e2e)/len(e2e),p50=pct(e2e,.5),p90=pct(e2e,.9)).items()},
      "reads_with_more_than_one_token":sum(1 for r in rs for x in r.get('ntok',[]) if x>1)}
class Run:
    def __init__(s,out,tag): s.f=open(out,'a'); s.tag=tag; s.sums=[]
    async def phase(s,sess,name,specs,conc=None,arrivals=None,extra=None):
        """specs: [(isl,osl)]; closed loop with conc workers or open loop with arrivals (s)"""
        name=s.tag+'/'+name; rng=random.Random(name); bodies=[body(rng,i,o) for i,o in specs]; res=[None]*len(specs)
        t0=mono(); wall0=time.time()
        if conc:
            it=iter(range(len(specs)))
            async def w():
                for k in it:
                    ta=mono(); res[k]=(ta,*await one(sess,bodies[k]))
            await asyncio.gather(*[w() for _ in range(conc)])
        else:
            async def a(k):
                ta=t0+arrivals[k]; await asyncio.sleep(max(0,ta-mono())); res[k]=(ta,*await one(sess,bodies[k]))
            await asyncio.gather(*[a(k) for k in range(len(specs))])
        rs=[]
        for k,(isl,osl) in enumerate(specs):
            ta,ts,ch=res[k]; r=digest(name,k,isl,osl,t0,ta,ts,ch); r['end_tok']=r['first']+sum(r['d10us'])/1e5; rs.append(r)
        t1=max(r['end'] for r in rs)
        sm=summary(name,rs,t1); sm.update(extra or {}); sm['t0_monotonic']=t0; sm['t0_unix']=wall0; sm['conc']=conc
        for r in rs: r.pop('end_tok')
        s.f.write(json.dumps({"phase":sm})+'\n')
        for r in rs: s.f.write(json.dumps(r,separators=(',',':'))+'\n')
        s.f.flush(); s.sums.append(sm)
        bad=sum(r['n']!=r['osl'] for r in rs)
        print(f"{name:24s} n={sm['n']} bad={bad} wall={sm['wall_s']} req/s={sm['req_s']} out/s={sm['out_tok_s']} TTFT p50/p90 {sm['ttft_ms']['p50']}/{sm['ttft_ms']['p90']} TPOT p50/p90 {sm['tpot_ms']['p50']}/{sm['tpot_ms']['p90']} ITL p50/p99 {sm['itl_ms']['p50']}/{sm['itl_ms']['p99']}",flush=True)
        return sm
def poisson(seed,rate,n):
    r=random.Random(seed); t=0; a=[]
    for _ in range(n): t+=r.expovariate(rate); a.append(t)
    return a
def lognorm(seed,n,mean,cv,lo,hi):
    import math
    r=random.Random(seed); s2=math.log(1+cv*cv); mu=math.log(mean)-s2/2
    return [min(hi,max(lo,round(r.lognormvariate(mu,s2**.5)))) for _ in range(n)]
async def metrics(sess,path):
    async with sess.get(URL+'/metrics') as r: t=await r.text()
    open(path,'w').write(t)
async def main():
    tag,out,plan,deadline=sys.argv[1],sys.argv[2],sys.argv[3],float(sys.argv[4])   # deadline: time.time() value
    left=lambda: deadline-time.time()
    R=Run(out,tag); S=(1024,256)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0),timeout=aiohttp.ClientTimeout(total=None),read_bufsize=1<<20) as s:
        W=Run('/dev/null',tag)
        await W.phase(s,'warm1',[(1024,32)]*8,conc=1)
        await W.phase(s,'warm2',[(1024,32)]*160,conc=128)
        await W.phase(s,'warm3',[(8192,8)]*8,conc=4)
        cap=None
        async def closed(c,n,spec=S,name=None): 
            return await R.phase(s,name or f'closed{c}',[spec]*n,conc=c)
        async def openp(frac,secs,name,mixed=False):
            rate=cap*frac; n=max(150,round(rate*secs))
            sp=list(zip(lognorm(11,n,1024,1.0,32,8192),lognorm(12,n,256,0.7,8,1024))) if mixed else [S]*n
            return await R.phase(s,name,sp,arrivals=poisson(f'{tag}{name}',rate,n),extra={"rate_req_s":rate,"frac":frac,"cap_req_s":cap})
        if plan=='main':
            for isl in (128,2048,8192): await R.phase(s,f'single{isl}',[(isl,128)]*5,conc=1)
            for c,n in ((8,40),(32,128),(128,512)): await closed(c,n)
            cap=(await closed(256,768))['req_s']
            for f,sec in ((.3,30),(.6,30),(.85,30)): await openp(f,sec,f'poisson{int(f*100)}')
            if left()>60: await openp(.6,30,'poisson60mixed',mixed=True)
            if left()>25: await closed(4,24,(8192,64),'prefill8k_c4')
        elif plan=='fp8':
            for isl in (128,2048,8192): await R.phase(s,f'single{isl}',[(isl,128)]*4,conc=1)
            for c,n in ((8,40),(32,128)): await closed(c,n)
            cap=(await closed(128,384))['req_s']
            if left()>35: await openp(.6,20,'poisson60')
            if left()>35: await openp(.85,20,'poisson85')
        elif plan=='tight':
            await R.phase(s,'single8192',[(8192,128)]*3,conc=1)
            await closed(32,96)
            cap=(await closed(96,192))['req_s']
            if left()>35: await openp(.7,20,'poisson70')
            if left()>30: await openp(.6,15,'poisson60mixed',mixed=True)
        elif plan=='test':
            await R.phase(s,'single',[(128,16)]*3,conc=1); cap=(await closed(8,16))['req_s']; await openp(.5,2,'p50',mixed=True)
        if plan!='test': await metrics(s,out+'.metrics.'+tag)
asyncio.run(main())
