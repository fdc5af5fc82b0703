use thinair_rohc::*;
fn main(){
 let a:Vec<String>=std::env::args().collect(); let n:usize=a[1].parse().unwrap(); let what=&a[2]; let six=a[3]=="6";
 let ch=Channel::new(CidSpace::Small,15,ProfileSet::v1()).unwrap();
 let mut c=CompressorConfig::new(ch);c.refresh=Refresh::Off;
 let mut comp=Compressor::new(c,CompressorMemory::owned(&ch,4));
 let mut dec=Decompressor::new(DecompressorConfig::new(ch),DecompressorMemory::owned(&ch,4));
 let mut p= if six {b"\x60\0\0\0\0\x11\x11\x40\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\x0e\xc0\0\0\0\0\0\0\0\0\0\0\0\x02\xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x12\x34\xb4time".to_vec()} else {b"\x45\0\0\x25\x12\x34\0\0\x40\x11\0\0\x0a\x63\0\x01\x0a\x63\0\x02\xe0\x01\x16\x33\0\x11\x12\x34\x40\x01\x00\x01\xb4time".to_vec()};
 let (mut o,mut k)=([0u8;200],[0u8;200]);
 let mut rohc=vec![];
 for i in 0..n+10 { if !six { let id=(i as u16).to_be_bytes(); p[4]=id[0];p[5]=id[1];p[10]=0;p[11]=0; let s=thinair_wire::checksum::checksum(&p[..20]).to_be_bytes(); p[10]=s[0];p[11]=s[1];}
   if what!="none" {let d=comp.compress(Instant::from_millis(i as u64),&p,&mut o).unwrap();
   if what=="both"{ rohc.push(o[..d.len].to_vec());}}
 }
 for (i,r) in rohc.iter().enumerate(){ let d=dec.decompress(Instant::from_millis(i as u64),r,&mut k).unwrap(); assert_eq!(d.len,p.len()); }
 println!("{:?} {:?}",Compressor::octets_per_context(),Decompressor::octets_per_context());
}
